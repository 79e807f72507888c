package inbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/workerlink/supervisor/internal/inbox"
)

// model is the box in its simplest form: one slice that is searched from the front for everything.
type model struct {
	limit  int
	closed bool
	serial int     // makes values and arrival numbers
	lines  []*line // in the order in which they were opened or awaited
	alive  []int   // gathers that were not released

	dropped map[int]bool // gathers of which a request was dropped since they said so
}

type line struct {
	id      string
	gather  int // 0: none
	awaited int // when it was awaited; orders Pending
	sent    bool
	arrived int // 0: not yet; also the value
}

func (m *model) tick() int { m.serial++; return m.serial }

func (m *model) find(id string) *line {
	for _, l := range m.lines {
		if l.id == id {
			return l
		}
	}
	return nil
}

func (m *model) remove(l *line) {
	m.lines = slices.DeleteFunc(m.lines, func(other *line) bool { return other == l })
}

func (m *model) stats() (s inbox.Stats) {
	for _, l := range m.lines {
		switch {
		case l.arrived > 0:
			s.Unclaimed++
		case l.sent:
			s.Open++
		}
	}
	return s
}

func (m *model) open(id string) error {
	l, s := m.find(id), m.stats()
	switch {
	case m.closed:
		return inbox.ErrClosed
	case l != nil && l.sent:
		return inbox.ErrDuplicate
	case s.Open+s.Unclaimed >= m.limit:
		return inbox.ErrFull
	case l != nil:
		l.sent = true
	default:
		m.lines = append(m.lines, &line{id: id, sent: true})
	}
	return nil
}

func (m *model) drop(id string) {
	if l := m.find(id); l.gather > 0 {
		l.sent = false
		if m.dropped == nil {
			m.dropped = make(map[int]bool)
		}
		m.dropped[l.gather] = true
	} else {
		m.remove(l)
	}
}

func (m *model) await(g int, ids []string, unsent bool) error {
	for _, id := range ids {
		switch l := m.find(id); {
		case l == nil && !unsent:
			return inbox.ErrUnknown
		case l != nil && l.gather > 0 && (!unsent || l.gather != g):
			return inbox.ErrAwaited
		}
	}
	for _, id := range ids {
		l := m.find(id)
		if l == nil {
			l = &line{id: id}
			m.lines = append(m.lines, l)
		}
		if l.gather == 0 {
			l.gather, l.awaited = g, m.tick()
		}
	}
	return nil
}

func (m *model) next(g int) (*line, error) {
	var first *line
	pending := false
	for _, l := range m.lines {
		if l.gather != g {
			continue
		}
		pending = pending || l.arrived == 0
		if l.arrived > 0 && (first == nil || l.arrived < first.arrived) {
			first = l
		}
	}
	switch {
	case first != nil:
		m.remove(first)
		return first, nil
	case g > 0 && !slices.Contains(m.alive, g):
		return nil, inbox.ErrClosed
	case g > 0 && !pending:
		return nil, inbox.ErrNone
	case m.closed:
		return nil, inbox.ErrClosed
	}
	return nil, context.Canceled
}

func (m *model) forget(g int, id string) bool {
	l := m.find(id)
	if l == nil || l.gather != g || l.arrived > 0 {
		return false
	}
	m.remove(l)
	return true
}

func (m *model) release(g int) {
	m.lines = slices.DeleteFunc(m.lines, func(l *line) bool { return l.gather == g && !l.sent })
	for _, l := range m.lines {
		if l.gather == g {
			l.gather = 0
		}
	}
	m.alive = slices.DeleteFunc(m.alive, func(other int) bool { return other == g })
}

func (m *model) pending(g int, unsentOnly bool) (ids []string) {
	var lines []*line
	for _, l := range m.lines {
		if l.gather == g && l.arrived == 0 && (!unsentOnly || !l.sent) {
			lines = append(lines, l)
		}
	}
	slices.SortFunc(lines, func(a, b *line) int { return a.awaited - b.awaited })
	for _, l := range lines {
		ids = append(ids, l.id)
	}
	return ids
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		m := &model{limit: limit}
		b := inbox.New[int](limit)
		entries := map[string]*inbox.Entry[int]{}
		gathers := []*inbox.Gather[int]{nil}
		ids := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"})
		gather := func(t *rapid.T) int { // any but the first, which means none
			if len(gathers) == 1 {
				t.Skip("no gather yet")
			}
			return rapid.IntRange(1, len(gathers)-1).Draw(t, "gather")
		}
		isOpen := func(id string) bool {
			l := m.find(id)
			return l != nil && l.sent && l.arrived == 0
		}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				e, err := b.Open(id)
				require.ErrorIs(t, err, m.open(id), "Open(%q)", id)
				if err == nil {
					entries[id] = e
				}
			},
			"deliver": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if entries[id] == nil {
					t.Skip("never opened")
				}
				want, v := isOpen(id), m.tick()
				require.Equal(t, want, entries[id].Deliver(v), "Deliver(%q)", id)
				if want {
					m.find(id).arrived = v
				}
			},
			"drop": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if entries[id] == nil {
					t.Skip("never opened")
				}
				entries[id].Drop()
				if isOpen(id) {
					m.drop(id)
				}
			},
			"next": func(t *rapid.T) {
				v, err := b.Next(ended)
				l, want := m.next(0)
				require.ErrorIs(t, err, want, "Next")
				if err == nil {
					require.Equal(t, l.arrived, v, "reply of Next")
				}
			},
			"await": func(t *rapid.T) {
				list := rapid.SliceOfN(ids, 0, 4).Draw(t, "ids")
				g, err := b.Await(list)
				number := len(gathers)
				require.ErrorIs(t, err, m.await(number, list, false), "Await(%q)", list)
				if err == nil {
					gathers = append(gathers, g)
					m.alive = append(m.alive, number)
				}
			},
			"add": func(t *rapid.T) {
				g, list := gather(t), rapid.SliceOfN(ids, 0, 3).Draw(t, "ids")
				want := inbox.ErrClosed
				if slices.Contains(m.alive, g) {
					want = m.await(g, list, true)
				}
				require.ErrorIs(t, gathers[g].Add(list...), want, "Add(%q)", list)
			},
			"gather next": func(t *rapid.T) {
				g := gather(t)
				id, v, err := gathers[g].Next(ended)
				if errors.Is(err, inbox.ErrDropped) {
					require.True(t, m.dropped[g], "Gather.Next says ErrDropped after a Drop")
					m.dropped[g] = false
					id, v, err = gathers[g].Next(ended)
				}
				l, want := m.next(g)
				require.ErrorIs(t, err, want, "Gather.Next")
				if err == nil {
					require.Equal(t, l.id, id, "id of Gather.Next")
					require.Equal(t, l.arrived, v, "reply of Gather.Next")
				}
			},
			"forget": func(t *rapid.T) {
				g, id := gather(t), ids.Draw(t, "id")
				require.Equal(t, m.forget(g, id), gathers[g].Forget(id), "Forget(%q)", id)
			},
			"release": func(t *rapid.T) {
				g := gather(t)
				gathers[g].Release()
				m.release(g)
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 20).Draw(t, "one in twenty") > 0 {
					t.Skip("not yet")
				}
				b.Close()
				m.closed = true
			},
			"": func(t *rapid.T) {
				require.Equal(t, m.stats(), b.Stats(), "Stats")
				for g := 1; g < len(gathers); g++ {
					require.Equal(t, m.pending(g, false), gathers[g].Pending(), "Pending of gather %d", g)
					require.Equal(t, m.pending(g, true), gathers[g].Unsent(), "Unsent of gather %d", g)
				}
			},
		})
	})
}
