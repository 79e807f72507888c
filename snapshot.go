package supervisor

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/task"
)

// Snapshot is what a supervisor knows of itself at one moment, as plain data.
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
	Kind        string    `json:"kind"` // goroutine, process, supervisor, or outside
	State       State     `json:"state"`
	Pid         int       `json:"pid,omitempty"`
	Incarnation uint64    `json:"incarnation,omitempty"`
	Since       time.Time `json:"since,omitzero"` // when the life got ready
	Restarts    int       `json:"restarts"`       // by the policy
	Recycled    int       `json:"recycled,omitempty"`
	Stuck       int       `json:"stuck,omitempty"` // earlier lives that could not be ended and still run
	LastExit    string    `json:"last_exit,omitempty"`
	Memory      int64     `json:"memory,omitempty"` // resident bytes of the process that it shares with nobody; Linux only
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
func (s *Supervisor) Snapshot() Snapshot {
	g := s.gen.Load()
	stats := g.inbox.Stats()
	children := s.children()
	shot := Snapshot{
		Running: g.phase() == running, Strategy: s.opts.strategy.String(), Open: stats.Open, Unclaimed: stats.Unclaimed,
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
	c.Stuck = len(s.abandoned.left())
	c.Events = s.past.lastEvents()
	c.Timing.Wait, c.Timing.Run, c.Timing.Samples = s.past.percentiles()
	if s.cfg.kind == Process && c.Pid != 0 {
		c.Memory, _ = proc.PrivateMemory(c.Pid) // it may just have ended, or the system may not tell
	}
	if b, ok := s.child.(*branch); ok {
		c.Kind, c.Tree = "supervisor", b.tree()
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

// String draws the children, and those of supervisors below, as a tree: one line
// each.
func (s Snapshot) String() string {
	var b strings.Builder
	s.draw(&b, "", "supervisor")
	return b.String()
}

func (s *Snapshot) draw(b *strings.Builder, indent, title string) {
	state := "stopped"
	if s.Running {
		state = "running"
	}
	fmt.Fprintf(b, "%s, %s, %s\n", title, state, s.Strategy)
	for i := range s.Children {
		c := &s.Children[i]
		branch, below := "├─ ", "│  "
		if i == len(s.Children)-1 {
			branch, below = "└─ ", "   "
		}
		b.WriteString(indent + branch)
		if c.Tree != nil {
			c.Tree.draw(b, indent+below, c.title()+" supervisor")
			continue
		}
		b.WriteString(c.title() + " " + c.Kind + ", " + c.State.String())
		if c.Pid != 0 {
			fmt.Fprintf(b, ", pid %d", c.Pid)
		}
		if c.Restarts > 0 {
			fmt.Fprintf(b, ", restarts %d", c.Restarts)
		}
		if c.Load.InFlight+c.Load.Queued > 0 {
			fmt.Fprintf(b, ", requests %d+%d", c.Load.InFlight, c.Load.Queued)
		}
		if c.LastExit != "" {
			fmt.Fprintf(b, ", last: %s", strings.TrimPrefix(firstLine(c.LastExit), "supervisor: "))
		}
		b.WriteString("\n")
	}
}

func (c *ChildSnapshot) title() string {
	if c.Name == "" {
		return strconv.Itoa(c.ProcID)
	}
	return strconv.Itoa(c.ProcID) + " " + strconv.Quote(c.Name)
}
