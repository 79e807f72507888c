package supervisor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/workerlink/supervisor/internal/awake"
	"github.com/workerlink/supervisor/internal/task"
)

// inspected is a link whose life can be asked for signs of life and ended with
// a diagnosis.
type inspected interface {
	// ping asks for a sign of life; Life.answered gets it. It does not wait.
	ping(num uint64)
	// occupied reports whether this side is still taking in what the life has
	// said: a sign of life may be behind it.
	occupied() bool
	// condemn ends the life because of why, with the stacks of what it is doing.
	condemn(why error)
}

// vigil watches one life: handlers that may not run for ever, signs of life,
// age and size. It counts only time in which this process was itself running.
type vigil struct {
	life *Life
	link inspected
	cfg  watchConfig // the numbers are this life's
	news chan struct{}
	run  *task.Task // guarded by the life's mutex

	mu      sync.Mutex
	watched map[*call]*allowance
	answer  error
	state   pingState
}

// allowance is how much longer a handler may run.
type allowance struct {
	until  time.Duration // on the clock of the vigil; 0 before it is set
	grants int
}

// pingState says what the vigil waits for.
type pingState int

const (
	pingDue      pingState = iota // the time of the next question
	pingOpen                      // its answer
	pingAnswered                  // nothing: it has come
)

// watch begins what the options of the child ask for.
func (l *Life) watch(cfg watchConfig) {
	if cfg.recycle.on() {
		l.worn = make(chan string, 1)
		cfg.recycle = cfg.recycle.jittered(rand.Float64())
		l.mu.Lock()
		l.most = cfg.recycle.MaxRequests
		l.mu.Unlock()
	}
	if cfg.liveness.Every > 0 || cfg.recycle.MaxAge > 0 || cfg.recycle.MaxMemory > 0 {
		l.vigil(cfg)
	}
}

// vigil returns the life's, which is made when it is first needed; nil if the
// life has ended or its link cannot be inspected.
func (l *Life) vigil(cfg watchConfig) *vigil {
	link, ok := l.link.(inspected)
	if !ok && cfg.recycle.MaxAge == 0 { // a kind made elsewhere, which can only grow old
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.unwatched {
		return nil
	}
	if l.guard == nil {
		v := &vigil{life: l, link: link, cfg: cfg, news: make(chan struct{}, 1), watched: make(map[*call]*allowance)}
		v.run = task.Go(v.keep)
		l.guard = v
	}
	return l.guard
}

// unwatch ends the vigil.
func (l *Life) unwatch() {
	l.mu.Lock()
	v := l.guard
	l.unwatched = true
	l.mu.Unlock()
	if v != nil {
		v.run.Stop()
		v.run.Wait()
	}
}

// begun says that the handler of a request with a KillAfter runs.
func (l *Life) begun(r *Request) {
	v := l.vigil(watchConfig{})
	if v == nil || r.call == nil {
		return
	}
	v.mu.Lock()
	v.watched[r.call] = &allowance{}
	v.mu.Unlock()
	v.wake()
}

func (v *vigil) wake() {
	select {
	case v.news <- struct{}{}:
	default:
	}
}

// Bounds of how often a vigil looks.
const (
	fastestLook = 5 * time.Millisecond
	slowestLook = time.Second
	looks       = 8 // within the shortest time that it watches
)

// pace is how often the vigil has to look; 0 means not at all.
func (v *vigil) pace() time.Duration {
	shortest := time.Duration(0)
	consider := func(d time.Duration) {
		if d > 0 && (d < shortest || shortest == 0) {
			shortest = d
		}
	}
	consider(v.cfg.recycle.MaxAge)
	if v.cfg.recycle.MaxMemory > 0 {
		consider(looks * slowestLook)
	}
	if v.cfg.liveness.Every > 0 {
		consider(v.cfg.liveness.Every)
		consider(v.cfg.liveness.timeout())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.watched {
		consider(c.killAfter)
	}
	if shortest == 0 {
		return 0
	}
	return min(max(shortest/looks, fastestLook), slowestLook)
}

// answered takes the answer to a question; err says that the object is not well.
func (v *vigil) answered(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state, v.answer = pingAnswered, err
	v.wake()
}

// keep looks again and again.
func (v *vigil) keep(ctx context.Context) {
	var clock awake.Clock
	look := look{vigil: v, clock: &clock}
	ticker := time.NewTicker(slowestLook)
	defer ticker.Stop()
	step := time.Duration(0)
	for {
		if pace := v.pace(); pace != step {
			ticker.Stop()
			if step = pace; step > 0 {
				ticker.Reset(step)
				clock.Tell(time.Now(), step)
			}
		}
		var stood bool
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			stood = clock.Tell(time.Now(), step)
		case <-v.news: // told here, so that a handler's time begins now and not at the last look
			stood = clock.Tell(time.Now(), step)
		}
		if why := look.over(stood); why != nil {
			v.link.condemn(why)
			return
		}
	}
}

// look is what a vigil remembers from one look to the next.
type look struct {
	vigil    *vigil
	clock    *awake.Clock
	pingAt   time.Duration // of the next question; or until when its answer may come
	grants   int           // to the answer
	memoryAt time.Duration
	worn     bool
}

// settle is what a handler gets at least after this process stood still: its
// reply may be on the way.
const settle = time.Second

// maxGrants is how often one handler, or one answer, gets more time because this
// process stood still. On a busy machine it seems to do so all the time, and what
// hangs would never be found; the time it stood is not counted anyway.
const maxGrants = 3

// over looks once; an error says that the life has to end.
func (k *look) over(stood bool) error {
	k.wear()
	if err := k.handlers(stood); err != nil {
		return err
	}
	if k.vigil.cfg.liveness.Every > 0 {
		return k.sign(stood)
	}
	return nil
}

// handlers returns an error if one has outrun its KillAfter.
func (k *look) handlers(stood bool) error {
	v, now := k.vigil, k.clock.Total()
	v.mu.Lock()
	defer v.mu.Unlock()
	for c, a := range v.watched {
		if _, open := v.life.number(c); !open {
			delete(v.watched, c)
			continue
		}
		switch {
		case a.until == 0:
			a.until = now + c.killAfter
		case stood && a.grants < maxGrants:
			if more := now + min(c.killAfter, settle); more > a.until {
				a.until = more
				a.grants++
			}
		case now >= a.until:
			c.outrun.Store(true)
			return fmt.Errorf("supervisor: %s ran for longer than its KillAfter of %v", c.Method, c.killAfter)
		}
	}
	return nil
}

// sign asks for signs of life, and returns an error if one does not come.
func (k *look) sign(stood bool) error {
	due, err := k.due(stood)
	if due { // not under the mutex: the answer may come at once
		k.vigil.life.ask(k.vigil.link, k.vigil.answered)
	}
	return err
}

// due reports whether the time of a question has come.
func (k *look) due(stood bool) (ask bool, err error) {
	v, now := k.vigil, k.clock.Total()
	every, timeout := v.cfg.liveness.Every, v.cfg.liveness.timeout()
	v.mu.Lock()
	defer v.mu.Unlock()
	switch v.state {
	case pingDue:
		if k.pingAt == 0 {
			k.pingAt = now + every
		}
		if now < k.pingAt {
			return false, nil
		}
		v.state, k.pingAt, k.grants = pingOpen, now+timeout, 0
		return true, nil
	case pingOpen:
		switch {
		case stood && k.grants < maxGrants:
			k.pingAt = now + timeout
			k.grants++
		case now >= k.pingAt && v.link.occupied():
			k.pingAt = now + timeout
		case now >= k.pingAt:
			return false, fmt.Errorf("supervisor: no sign of life for %v", timeout)
		}
	case pingAnswered:
		if v.answer != nil {
			return false, &whereError{"Health", v.answer}
		}
		v.state, k.pingAt = pingDue, now+every
	}
	return false, nil
}
