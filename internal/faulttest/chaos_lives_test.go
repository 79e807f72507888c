package faulttest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/workerlink/supervisor"
)

// chaosLives is what the events say of all lives. Only what is needed of an event is kept.
type chaosLives struct {
	mu      sync.Mutex
	lives   map[uint64]*chaosLifeSeen
	current map[int]uint64 // child -> its life that has started and not ended
	last    map[int]uint64 // child -> its last life that has started
	counts  map[supervisor.EventKind]int
	dropped int64
	wrong   []string
}

// chaosLifeSeen is one life.
type chaosLifeSeen struct {
	child, pid     int
	started, ended bool
}

func newChaosLives() *chaosLives {
	return &chaosLives{
		lives: make(map[uint64]*chaosLifeSeen), current: make(map[int]uint64), last: make(map[int]uint64),
		counts: make(map[supervisor.EventKind]int),
	}
}

// record is the function of WithEvents.
func (l *chaosLives) record(e supervisor.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[e.Kind]++
	switch e.Kind {
	case supervisor.EventDropped:
		l.dropped += e.N
	case supervisor.EventStarted:
		l.started(e)
	case supervisor.EventExited, supervisor.EventStopped, supervisor.EventStuck:
		l.ended(e)
	}
}

func (l *chaosLives) say(e supervisor.Event, format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf("%v of life %d, child %d, pid %d (%v): ", e.Kind, e.Incarnation, e.ProcID, e.Pid, e.Err)+
		fmt.Sprintf(format, args...))
}

func (l *chaosLives) started(e supervisor.Event) {
	switch other, before := l.current[e.ProcID], l.last[e.ProcID]; {
	case l.lives[e.Incarnation] != nil:
		l.say(e, "there was an event of this life before")
	case e.Incarnation <= before:
		l.say(e, "the child had life %d before", before)
	case other != 0 && l.dropped == 0:
		l.say(e, "life %d of the child has not ended", other)
	}
	l.lives[e.Incarnation] = &chaosLifeSeen{child: e.ProcID, pid: e.Pid, started: true}
	l.current[e.ProcID], l.last[e.ProcID] = e.Incarnation, e.Incarnation
}

func (l *chaosLives) ended(e supervisor.Event) {
	life := l.lives[e.Incarnation]
	switch {
	case e.Kind == supervisor.EventStuck && e.Pid != 0:
		l.say(e, "a process can be killed") // a goroutine that is cut off at once may need longer on a busy machine
	case life == nil:
		// A life that comes up when it is not wanted any more is stopped at once.
		if e.Kind != supervisor.EventStopped && l.dropped == 0 {
			l.say(e, "it had not started")
		}
		life = &chaosLifeSeen{child: e.ProcID, pid: e.Pid}
		l.lives[e.Incarnation] = life
	case life.ended:
		l.say(e, "it had ended before")
	case life.child != e.ProcID || life.pid != e.Pid:
		l.say(e, "it had started as child %d, pid %d", life.child, life.pid)
	}
	life.ended = true
	if l.current[e.ProcID] == e.Incarnation {
		delete(l.current, e.ProcID)
	}
}

// check fails the test if the events do not fit together.
func (l *chaosLives) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped == 0 {
		for _, n := range slices.Sorted(maps.Keys(l.lives)) {
			if life := l.lives[n]; !life.ended {
				l.wrong = append(l.wrong, fmt.Sprintf("life %d has not ended: %+v", n, *life))
			}
		}
	}
	if len(l.wrong) > 0 {
		t.Errorf("events that do not fit together (%d were dropped):\n%s", l.dropped, strings.Join(l.wrong[:min(len(l.wrong), 30)], "\n"))
	}
}

// String counts the events.
func (l *chaosLives) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text []string
	for _, kind := range slices.Sorted(maps.Keys(l.counts)) {
		text = append(text, fmt.Sprintf("%d %v", l.counts[kind], kind))
	}
	return fmt.Sprintf("%d lives, events: %s", len(l.lives), strings.Join(text, ", "))
}
