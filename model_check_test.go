package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/workerlink/supervisor"
)

// actor takes the time that it is told to, and keeps count.
type actor struct {
	mu   sync.Mutex
	runs map[string]int
}

var errActor = errors.New("actor: told to fail")

// Act is one request of the model.
func (a *actor) Act(ctx context.Context, id string, takes time.Duration, fails bool) error {
	a.mu.Lock()
	a.runs[id]++
	a.mu.Unlock()
	if err := pause(ctx, takes); err != nil {
		return err
	}
	if fails {
		return errActor
	}
	return nil
}

// outcomeOf puts an error into the words of the model.
func outcomeOf(err error) string {
	var remote *supervisor.RemoteError
	switch {
	case err == nil:
		return gotValue
	case errors.Is(err, supervisor.ErrPending):
		return isPending
	case errors.Is(err, supervisor.ErrTimeout):
		return gotTimeout
	case errors.Is(err, supervisor.ErrCanceled):
		return gotCanceled
	case errors.Is(err, supervisor.ErrRestarted):
		return gotRestarted
	case errors.Is(err, supervisor.ErrNoSuchRequest):
		return isUnknown
	case errors.Is(err, supervisor.ErrDuplicateRequest):
		return isDuplicate
	case errors.Is(err, supervisor.ErrBusy):
		return isBusy
	case errors.Is(err, errScript):
		return isCallback
	case errors.As(err, &remote):
		return gotError
	}
	return err.Error()
}

var errScript = errors.New("script: enough")

// pair is a supervisor and its model.
type pair struct {
	t        *rapid.T
	m        *model
	sup      *supervisor.Supervisor
	actor    *actor
	epoch    time.Time
	ids      []string // all that were ever used
	serial   int      // makes times
	accepted map[string]bool
	verdicts map[string][]supervisor.RecvPayload // of what was accepted
}

// span is a time that no sum of others equals: two events of one run never happen at once.
func (p *pair) span() time.Duration {
	if p.serial++; p.serial > 45 {
		p.t.Skip("out of times")
	}
	coarse := rapid.IntRange(0, 3).Draw(p.t, "coarse time")
	return time.Duration(coarse)<<46 + 1<<p.serial
}

func (p *pair) fresh() string {
	id := fmt.Sprintf("r%d", len(p.ids))
	p.ids = append(p.ids, id)
	return id
}

// request draws one that was not sent yet.
func (p *pair) request() *modelRequest {
	return &modelRequest{
		id: p.fresh(), child: rapid.IntRange(0, 1).Draw(p.t, "child"),
		takes: p.span(), fails: rapid.Bool().Draw(p.t, "fails"),
	}
}

func (r *modelRequest) payload() supervisor.SendPayload {
	return named(r.id, r.child, "Act", r.id, r.takes, r.fails)
}

// some draws ids, known and unknown ones.
func (p *pair) some(label string) []string {
	known := append(slices.Clone(p.ids), "nobody's")
	return rapid.SliceOfN(rapid.SampledFrom(known), 1, 4).Draw(p.t, label)
}

func (p *pair) accept(id string, err error) error {
	if err == nil {
		p.accepted[id] = true
	}
	return err
}

// verdict counts one, unless it is that of an id that was added and never sent.
func (p *pair) verdict(r supervisor.RecvPayload) {
	if p.accepted[r.ReqID] {
		p.verdicts[r.ReqID] = append(p.verdicts[r.ReqID], r)
	}
}

func (p *pair) send() {
	r := p.request()
	if n := len(p.ids) - 1; n > 0 && rapid.IntRange(0, 7).Draw(p.t, "known id") == 0 {
		id := p.ids[rapid.IntRange(0, n-1).Draw(p.t, "id")]
		if p.m.find(id) == nil && !p.m.hasArrived(id) {
			p.t.Skip("the id was used up")
		}
		r.id = id
	}
	payload := r.payload()
	if rapid.IntRange(0, 3).Draw(p.t, "with a timeout") == 0 {
		payload.Timeout = p.span()
		r.expires = p.m.now + payload.Timeout
	}
	var err error
	if rapid.Bool().Draw(p.t, "TrySend") {
		err = p.sup.TrySend(payload)
	} else {
		err = p.sup.Send(context.Background(), payload)
	}
	want := p.m.send(*r)
	if want == "" {
		want = gotValue // no error
	}
	require.Equal(p.t, want, outcomeOf(p.accept(r.id, err)), "Send of %q", r.id)
}

func (p *pair) recv() {
	limit := p.span()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	want := p.m.recv(p.m.now + limit)
	got, err := p.sup.Recv(ctx, supervisor.IgnoreErr())
	if err == nil {
		p.verdict(got)
		err = got.Err
	}
	require.Equal(p.t, want, modelReply{got.ReqID, outcomeOf(err)}, "Recv")
}

func (p *pair) cancel() {
	ids := p.some("cancelled")
	want := gotValue
	if p.m.cancel(ids) {
		want = isUnknown
	}
	require.Equal(p.t, want, outcomeOf(p.sup.Cancel(ids...)), "Cancel(%q)", ids)
}

func (p *pair) restart() {
	child := rapid.IntRange(0, 1).Draw(p.t, "restarted")
	p.m.restart(child)
	require.NoError(p.t, p.sup.Restart(context.Background(), child), "Restart(%d)", child)
}

func (p *pair) wait() {
	d := p.span()
	<-time.After(d)
	p.m.advance(p.m.now + d)
}

// script draws what OnReply does at its first calls.
func (p *pair) script(list []string) []scriptAction {
	var script []scriptAction
	var unsent []*modelRequest
	for range rapid.IntRange(0, 4).Draw(p.t, "script") {
		var a scriptAction
		switch rapid.SampledFrom([]string{"nothing", "send", "add", "unsent", "other", "fail"}).Draw(p.t, "action") {
		case "send":
			a.send = p.request()
		case "add":
			var strangers []string
			for _, id := range p.ids {
				if !slices.Contains(list, id) && (p.m.find(id) != nil || p.m.hasArrived(id)) {
					strangers = append(strangers, id)
				}
			}
			if len(strangers) > 0 {
				a.add = rapid.SampledFrom(strangers).Draw(p.t, "added")
				list = append(list, a.add)
			}
		case "unsent":
			r := p.request()
			unsent = append(unsent, r)
			a.add = r.id
		case "other":
			if len(unsent) > 0 {
				a.other, unsent = unsent[0], unsent[1:]
			}
		case "fail":
			a.fail = true
		}
		script = append(script, a)
	}
	return script
}

func (p *pair) recvAll() {
	list := p.some("awaited")
	if rapid.IntRange(0, 3).Draw(p.t, "known only") > 0 {
		list = slices.DeleteFunc(list, func(id string) bool { return p.m.find(id) == nil && !p.m.hasArrived(id) })
	}
	if len(list) == 0 {
		p.t.Skip("nothing to await")
	}
	limit := p.span()
	c := modelCall{list: list, ignoreErr: rapid.Bool().Draw(p.t, "IgnoreErr"), deadline: p.m.now + limit}
	var opts []supervisor.RecvOption
	if rapid.IntRange(0, 2).Draw(p.t, "with IdleTimeout") == 0 {
		c.idle = p.span()
		opts = append(opts, supervisor.IdleTimeout(c.idle))
	}
	if c.ignoreErr {
		opts = append(opts, supervisor.IgnoreErr())
	}
	c.script = p.script(slices.Clone(list))
	want := p.m.recvAll(c)

	var seen []modelReply
	opts = append(opts, supervisor.OnReply(func(w *supervisor.Waiting, r supervisor.RecvPayload) error {
		seen = append(seen, modelReply{r.ReqID, outcomeOf(r.Err)})
		p.verdict(r)
		if len(seen) > len(c.script) {
			return nil
		}
		return p.play(w, c.script[len(seen)-1])
	}))
	var reqs []supervisor.SendPayload
	for _, id := range list {
		reqs = append(reqs, named(id, 0, "Act"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	got, err := p.sup.RecvAll(ctx, reqs, opts...)
	var entries []string
	for i, r := range got {
		require.Equal(p.t, list[i], r.ReqID, "id of entry %d", i)
		entries = append(entries, outcomeOf(r.Err))
	}
	outcome := ""
	if err != nil {
		outcome = outcomeOf(err)
	}
	require.Equal(p.t, want.seen, seen, "what OnReply has seen")
	require.Equal(p.t, want.entries, entries, "entries of RecvAll(%q)", list)
	require.Equal(p.t, want.outcome, outcome, "error of RecvAll(%q)", list)
}

// play does what the script says.
func (p *pair) play(w *supervisor.Waiting, a scriptAction) error {
	switch {
	case a.fail:
		return errScript
	case a.send != nil:
		_ = p.accept(a.send.id, w.Send(a.send.payload())) // the model knows whether it is refused: OnReply sees it or not
	case a.other != nil:
		_ = p.accept(a.other.id, p.sup.TrySend(a.other.payload())) // likewise
	case a.add != "":
		_ = w.Add(named(a.add, 0, "Act")) // likewise
	}
	return nil
}

// same compares what can be seen from outside.
func (p *pair) same() {
	synctest.Wait()
	s := p.sup.Snapshot()
	require.Equal(p.t, []int{p.m.open(), len(p.m.arrived)}, []int{s.Open, s.Unclaimed}, "open and unclaimed in Snapshot")
	require.Equal(p.t, p.m.now, time.Since(p.epoch), "the clock")
}

// finish closes the supervisor and applies the conservation law: each accepted request has had one verdict, and was
// executed at most once, and once if that is a value or the handler's own error.
func (p *pair) finish() {
	require.NoError(p.t, p.sup.Shutdown(context.Background()), "Shutdown")
	for {
		r, err := p.sup.Recv(context.Background(), supervisor.IgnoreErr())
		if err != nil {
			require.ErrorIs(p.t, err, supervisor.ErrClosed, "Recv when nothing is left")
			break
		}
		p.verdict(r)
	}
	for id := range p.accepted {
		got, runs := p.verdicts[id], p.actor.runs[id]
		require.Len(p.t, got, 1, "verdicts of %q", id)
		outcome := outcomeOf(got[0].Err)
		require.LessOrEqual(p.t, runs, 1, "executions of %q, whose verdict is %s", id, outcome)
		if outcome == gotValue || outcome == gotError {
			require.Equal(p.t, 1, runs, "executions of %q, whose verdict is %s", id, outcome)
		}
	}
	for id, runs := range p.actor.runs {
		require.True(p.t, p.accepted[id], "%q was executed %d times and never accepted", id, runs)
	}
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// A bubble for each run, because the clock of rapid itself must not jump. Its panics have to get back to it.
		var failure any
		inBubble(t, func(*testing.T) {
			defer func() { failure = recover() }()
			checkAgainstModel(rt)
		})
		// Rapid tells failures by the line where they come from, and what it gave up itself is none.
		if fmt.Sprintf("%T", failure) == "rapid.invalidData" {
			panic(failure)
		}
		if failure != nil {
			panic(failure)
		}
	})
}

func checkAgainstModel(t *rapid.T) {
	p := &pair{
		t: t, m: &model{limit: rapid.IntRange(3, 9).Draw(t, "inbox limit")},
		actor: &actor{runs: make(map[string]int)}, epoch: time.Now(),
		accepted: make(map[string]bool), verdicts: make(map[string][]supervisor.RecvPayload),
	}
	var err error
	p.sup, err = supervisor.New(supervisor.Goroutine, supervisor.WithInboxLimit(p.m.limit))
	require.NoError(t, err, "New")
	defer p.sup.Close() // also when the check has failed, so that the bubble can end
	for range p.m.queues {
		_, err = p.sup.Register(context.Background(), supervisor.Object(p.actor))
		require.NoError(t, err, "Register")
	}
	require.NoError(t, p.sup.StartLink(context.Background()), "StartLink")
	actions := make(map[string]func(*rapid.T))
	for name, act := range map[string]func(){
		"send": p.send, "send more": p.send, "recv": p.recv, "recv all": p.recvAll, "recv all again": p.recvAll,
		"cancel": p.cancel, "restart": p.restart, "wait": p.wait, "": p.same,
	} {
		actions[name] = func(t *rapid.T) {
			p.t = t
			act()
		}
	}
	t.Repeat(actions)
	p.t = t
	p.finish()
}
