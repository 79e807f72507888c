package supervisor

import (
	"context"
	"reflect"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// Snapshot is what a supervisor knows of itself at one moment, as plain data.
type Snapshot struct {
	Running   bool            `json:"running"`
	Open      int             `json:"open"`      // requests of Send without a reply
	Unclaimed int             `json:"unclaimed"` // replies that nobody has taken
	Children  []ChildSnapshot `json:"children"`
}

// ChildSnapshot is one child in a [Snapshot].
type ChildSnapshot struct {
	ProcID      int       `json:"proc_id"`
	Name        string    `json:"name,omitempty"`
	Kind        string    `json:"kind"` // goroutine, process, or outside
	State       State     `json:"state"`
	Pid         int       `json:"pid,omitempty"`
	Incarnation uint64    `json:"incarnation,omitempty"`
	Since       time.Time `json:"since,omitzero"` // when the life got ready
	Restarts    int       `json:"restarts"`       // by the policy
	LastExit    string    `json:"last_exit,omitempty"`
	Load        Load      `json:"load"`
	Object      any       `json:"object,omitempty"` // of the object's own Snapshot hook
}

// Load is what a child has to do.
type Load struct {
	Queued   int   `json:"queued"`    // accepted, and no handler works on it yet
	InFlight int   `json:"in_flight"` // handlers at work; for a process as far as the host can tell
	Late     int64 `json:"late"`      // replies that came after the verdict, in all lives
}

// snapshotWait is how long a busy object may keep the others waiting.
const snapshotWait = 100 * time.Millisecond

// snapshotter is the hook of objects that show something of themselves.
type snapshotter interface{ Snapshot() any }

var snapshotterType = reflect.TypeFor[snapshotter]()

// Snapshot describes the supervisor and its children. Objects with a method
// Snapshot() any are asked for theirs between two requests; one that is busy
// for longer than 100 ms is left out.
func (s *Supervisor) Snapshot() Snapshot {
	g := s.gen.Load()
	stats := g.inbox.Stats()
	children := s.children()
	shot := Snapshot{
		Running: g.phase() == running, Open: stats.Open, Unclaimed: stats.Unclaimed,
		Children: make([]ChildSnapshot, len(children)),
	}
	tasks := make([]*task.Task, len(children))
	for i, sl := range children {
		shot.Children[i] = sl.snapshot()
		tasks[i] = task.Go(func(context.Context) { shot.Children[i].Object = sl.objectSnapshot() })
	}
	for _, t := range tasks {
		t.Wait()
	}
	return shot
}

func (s *slot) snapshot() ChildSnapshot {
	c, last := s.look()
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
		Restarts: s.restarts, Load: Load{Late: s.late.Load()},
	}
	if s.cfg.outside {
		c.Kind = "outside"
	}
	if s.life == nil {
		return c, s.err
	}
	c.Incarnation = s.life.Incarnation()
	if s.state == StateUp || s.state == StateStopping {
		_, open := s.life.oldest()
		c.Load.InFlight = min(open, s.cfg.concurrency)
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
