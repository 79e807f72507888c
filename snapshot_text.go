package supervisor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// String draws the children, and those of supervisors below, as a tree: one line
// each, with what is not as it should be, and the request that is open longest.
func (s Snapshot) String() string {
	var b strings.Builder
	state := "stopped"
	if s.Running {
		state = "running"
	}
	fmt.Fprintf(&b, "supervisor, %s, %s\n", state, s.Strategy)
	s.drawChildren(&b, "")
	return b.String()
}

func (s *Snapshot) drawChildren(b *strings.Builder, indent string) {
	for i := range s.Children {
		c := &s.Children[i]
		branch, below := "├─ ", "│  "
		if i == len(s.Children)-1 {
			branch, below = "└─ ", "   "
		}
		b.WriteString(indent + branch + c.line() + "\n")
		if c.Tree != nil {
			c.Tree.drawChildren(b, indent+below)
		}
	}
}

// line is the same for all kinds of child.
func (c *ChildSnapshot) line() string {
	parts := []string{c.title() + " " + c.Kind, c.State.String()}
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	if c.Tree != nil {
		add(true, "%s", c.Tree.Strategy)
	}
	add(c.Pid != 0, "pid %d", c.Pid)
	add(c.Restarts > 0, "restarts %d", c.Restarts)
	add(c.Recycled > 0, "recycled %d", c.Recycled)
	add(c.Stuck > 0, "stuck %d", c.Stuck)
	add(c.Load.InFlight+c.Load.Queued > 0, "requests %d+%d", c.Load.InFlight, c.Load.Queued)
	if o := c.Timing.Oldest; o != nil {
		add(true, "oldest %s for %v", oneLine(o.Method), o.Age.Round(time.Millisecond))
	}
	add(c.LastExit != "", "last: %s", strings.TrimPrefix(oneLine(c.LastExit), "supervisor: "))
	return strings.Join(parts, ", ")
}

// title is the child's id with its name or, without one, its type.
func (c *ChildSnapshot) title() string {
	switch {
	case c.Name != "":
		return strconv.Itoa(c.ProcID) + " " + strconv.Quote(c.Name)
	case c.Type != "":
		return strconv.Itoa(c.ProcID) + " " + c.Type
	default:
		return strconv.Itoa(c.ProcID)
	}
}

// String tells the supervisor from others, in one line: by its first children.
// It asks nobody and takes no locks, so that logs and other supervisors may
// print it at any time.
func (s *Supervisor) String() string {
	const shown = 3
	children := s.children()
	if len(children) == 0 {
		return "supervisor without children"
	}
	var titles []string
	for _, sl := range children[:min(shown, len(children))] {
		titles = append(titles, (&ChildSnapshot{ProcID: sl.id, Name: sl.cfg.name, Type: sl.typeText()}).title())
	}
	if more := len(children) - shown; more > 0 {
		titles = append(titles, fmt.Sprintf("%d more", more))
	}
	return "supervisor of " + strings.Join(titles, ", ")
}

// UnmarshalText reads what MarshalText has written.
func (s *State) UnmarshalText(text []byte) error {
	states := []State{StateIdle, StateStarting, StateUp, StateWaiting, StateStopping, StateEnded}
	i := slices.IndexFunc(states, func(st State) bool { return st.String() == string(text) })
	if i < 0 {
		return fmt.Errorf("%w: no state of a child: %q", ErrDecode, text)
	}
	*s = states[i]
	return nil
}
