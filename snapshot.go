package supervisor

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/task"
)

// Snapshot is what a supervisor knows of itself at one moment, as plain data.
// Its JSON can be read back into a Snapshot: errors are text in both, and what
// an object told of itself comes back as JSON has it.
type Snapshot struct {
	Running   bool            `json:"running"`
	Strategy  string          `json:"strategy"`
	Open      int             `json:"open"`      // requests of Send without a reply
	Unclaimed int             `json:"unclaimed"` // replies that nobody has taken
	Children  []ChildSnapshot `json:"children"`
}

// ChildSnapshot is one child in a [Snapshot].
type ChildSnapshot struct {
	ProcID      int       `json:"proc_id"`
	Name        string    `json:"name,omitempty"`
	Type        string    `json:"type,omitempty"` // the factory's name; of a ready object, or a kind made elsewhere, the Go type
	Kind        string    `json:"kind"`           // goroutine, process, supervisor, or outside
	State       State     `json:"state"`
	Pid         int       `json:"pid,omitempty"`
	Incarnation uint64    `json:"incarnation,omitempty"`
	Since       time.Time `json:"since,omitzero"` // when the life got ready
	Restarts    int       `json:"restarts"`       // by the policy
	Recycled    int       `json:"recycled,omitempty"`
	Stuck       int       `json:"stuck,omitempty"`     // earlier lives that could not be ended and still run
	LastExit    string    `json:"last_exit,omitempty"` // how it last ended without being asked to; it stays after Shutdown
	Memory      int64     `json:"memory,omitempty"`    // resident bytes of the process that it shares with nobody; Linux only
	Load        Load      `json:"load"`
	Timing      Timing    `json:"timing,omitzero"`
	Object      any       `json:"object,omitempty"` // of the object's own Snapshot hook

	Events []EventSnapshot `json:"events,omitempty"` // the last ones, output and late replies left out
	Tree   *Snapshot       `json:"tree,omitempty"`   // of a supervisor below this one
}

// Load is what a child has to do.
type Load struct {
	Queued   int   `json:"queued"`    // accepted, and no handler works on it yet
	InFlight int   `json:"in_flight"` // handlers at work; for a process as far as the host can tell
	Late     int64 `json:"late"`      // replies that came after the verdict, in all lives
}

// Timing is how long the requests of a child take.
type Timing struct {
	Oldest *OldestRequest `json:"oldest,omitempty"` // nil if none is open

	// One request of 64 is timed, all with [WithTimings]; these are of the last
	// 256. Those of kinds made elsewhere are not.
	Samples int         `json:"samples,omitempty"`
	Wait    Percentiles `json:"wait,omitzero"` // in the child's queue
	Run     Percentiles `json:"run,omitzero"`  // of the handler
}

// snapshotWait is how long a busy object may keep the others waiting.
const snapshotWait = 100 * time.Millisecond

// snapshotter is the hook of objects that show something of themselves.
type snapshotter interface{ Snapshot() any }

var snapshotterType = reflect.TypeFor[snapshotter]()

// Snapshot describes the supervisor and its children. Objects with a method
// Snapshot() any are asked for theirs between two requests; one that is busy
// for longer than 100 ms is left out.
func (s *Supervisor) Snapshot() Snapshot { return s.snapshot(nil) }

// snapshot is Snapshot below those above. A supervisor among them is not shown
// again: it would never end.
func (s *Supervisor) snapshot(above []*Supervisor) Snapshot {
	g := s.gen.Load()
	stats := g.inbox.Stats()
	children := s.children()
	shot := Snapshot{
		Running: g.phase() == running, Strategy: s.opts.strategy.String(), Open: stats.Open, Unclaimed: stats.Unclaimed,
		Children: make([]ChildSnapshot, len(children)),
	}
	above = append(slices.Clip(above), s)
	tasks := make([]*task.Task, len(children))
	for i, sl := range children {
		shot.Children[i] = sl.snapshot()
		tasks[i] = task.Go(func(context.Context) { // these may take their time, so all at once
			if b, ok := sl.child.(*branch); ok {
				shot.Children[i].Tree = b.tree(above)
				return
			}
			shot.Children[i].Object = sl.objectSnapshot()
		})
	}
	for _, t := range tasks {
		t.Wait()
	}
	return shot
}

func (s *slot) snapshot() ChildSnapshot {
	c, last := s.look()
	c.Stuck = len(s.abandoned.left())
	c.Events = s.past.lastEvents()
	c.Timing.Wait, c.Timing.Run, c.Timing.Samples = s.past.percentiles()
	if s.cfg.kind == Process && c.Pid != 0 {
		c.Memory, _ = proc.PrivateMemory(c.Pid) // it may just have ended, or the system may not tell
	}
	c.Type = s.typeText()
	if _, ok := s.child.(*branch); ok {
		c.Kind = "supervisor"
	}
	if last == nil {
		last = s.past.lastExit()
	}
	if last != nil {
		c.LastExit = errorText(last) // perhaps user code, so not under the lock
	}
	return c
}

// look is what there is to see of the child without asking anybody; last is how
// its last life ended.
func (s *slot) look() (c ChildSnapshot, last error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = ChildSnapshot{
		ProcID: s.id, Name: s.cfg.name, Kind: s.cfg.kind.String(), State: s.state,
		Restarts: s.counts.restarts, Recycled: s.counts.recycled, Load: Load{Late: s.late.Load()},
	}
	if s.cfg.outside {
		c.Kind = "outside"
	}
	if s.life == nil {
		return c, s.err
	}
	c.Incarnation = s.life.Incarnation()
	if s.state == StateUp || s.state == StateStopping {
		var open int
		c.Timing.Oldest, open = s.life.look()
		c.Load.InFlight = min(open, s.cfg.handlers.concurrency)
		c.Load.Queued = max(0, s.gate.held()-c.Load.InFlight)
		c.Pid, c.Since = pidOf(s.life.link), s.life.up
	}
	return c, s.err
}

// objectSnapshot asks the object for its own, in the queue of its requests.
func (s *slot) objectSnapshot() any {
	c, ok := s.child.(interface{ snapshots() bool })
	if !ok || !c.snapshots() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), snapshotWait)
	defer cancel()
	p, err := s.sup.do(ctx, &SendPayload{ProcID: s.id, Method: hookSnapshot}, true)
	if err != nil {
		return nil
	}
	return p.Data
}

// hookSnapshot is the attribute name under which the hook is read; methods of
// this name are hooks and never in a table.
const hookSnapshot = "Snapshot"

// typeText says what the child is, for those that have no name.
func (s *slot) typeText() string {
	switch c := s.child.(type) {
	case *threadChild:
		return factoryText(c.spec.name)
	case *processChild:
		return factoryText(c.name)
	case *branch:
		return ""
	default:
		return fmt.Sprintf("%T", c)
	}
}
