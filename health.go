package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// healthWait is how long Healthy waits for the children's own word.
const healthWait = time.Second

// Healthy returns nil if every child is started, is up or coming back, and is
// well by its own word: that of its Health(ctx) error hook, or of the children of a
// supervisor below. A child whose work is done, by an orderly end after which its
// policy wants no other life, is well. Otherwise the error says what is wrong with
// which. A word that is not given within a second is no good one.
func (s *Supervisor) Healthy() error {
	if _, err := s.current(); err != nil {
		return err
	}
	children := s.children()
	errs := make([]error, len(children))
	tasks := make([]*task.Task, len(children))
	for i, sl := range children {
		tasks[i] = task.Go(func(context.Context) { errs[i] = sl.healthy() })
	}
	for _, t := range tasks {
		t.Wait()
	}
	return errors.Join(errs...)
}

func (s *slot) healthy() error {
	limit := time.NewTimer(healthWait)
	defer limit.Stop()
	child := fmt.Sprintf("child %d%s", s.id, quoted(s.cfg.name))
	for {
		s.mu.Lock()
		state, life, err, done, changed := s.state, s.life, s.err, s.done, s.changed
		s.mu.Unlock()
		switch {
		case done: // its work is
			return nil
		case state == StateEnded || state == StateIdle:
			return &whereError{child + " has ended", orErr(err, ErrClosed)}
		case state != StateUp:
			return nil
		}
		err, known := life.health(s.child, changed, limit.C)
		switch {
		case err != nil:
			return &whereError{child + " is not well", err}
		case known:
			return nil
		}
	}
}

// health is the word of a life on itself; nil if it has none. It is not known
// if the child's state changes before it comes.
func (l *Life) health(child Child, changed <-chan struct{}, limit <-chan time.Time) (word error, known bool) {
	if b, ok := child.(*branch); ok {
		return b.sup.Healthy(), true
	}
	link, ok := l.link.(inspected)
	if !ok {
		return nil, true
	}
	answer := make(chan error, 1)
	question := l.ask(link, func(err error) { answer <- err })
	defer func() { l.forget(question) }()
	select {
	case err := <-answer:
		return err, true
	case <-changed:
		return nil, false
	case <-limit:
		return fmt.Errorf("%w: no sign of life for %v", ErrTimeout, healthWait), true
	}
}

// ask asks for a sign of life. The answer, if it comes, calls take, which must
// not wait, on a goroutine of the link's. The question can be forgotten by its
// number.
func (l *Life) ask(link inspected, take func(err error)) (num uint64) {
	l.mu.Lock()
	l.asked++
	num = l.asked
	if l.questions == nil {
		l.questions = make(map[uint64]func(error))
	}
	l.questions[num] = take
	l.mu.Unlock()
	link.ping(num)
	return num
}

func (l *Life) forget(question uint64) func(error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	take := l.questions[question]
	delete(l.questions, question)
	return take
}

// answered is the answer to a question; one that nobody asked is dropped.
func (l *Life) answered(question uint64, err error) {
	if take := l.forget(question); take != nil {
		take(err)
	}
}
