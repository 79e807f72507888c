package vecenv_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/vecenv/vecenv"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, supervisor.Init) }

// Times of the fake environment, and limits. Those that are to be outrun are much longer than what is to stay below.
const (
	tick   = 10 * time.Millisecond // a step takes one to two; an episode six to twelve
	pause  = 4 * tick              // of "wait"
	tight  = 200 * time.Millisecond
	ample  = 15 * time.Second
	grace  = 60 * time.Millisecond
	number = 3
)

// fake is an environment that does what it is told: by the parameter of a reset and by an action.
type fake struct {
	TimeID    int64 // tells it from any other
	Pid       int
	SeedValue int64
	Episodes  int // ended
	Steps     int
	Seen      []float64

	random        *rand.Rand
	clock, target time.Duration
	errorOnce     int
}

// making is what the factory is told.
type making struct{ SlowWhile string } // a file: while it exists no environment gets ready

var makeFake = vecenv.DefineWith("vecenv_test.fake", func(ctx context.Context, m making) (*fake, error) {
	if _, err := os.Stat(m.SlowWhile); err == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	seed := rand.Uint64()
	return &fake{TimeID: int64(seed >> 1), Pid: os.Getpid(), random: rand.New(rand.NewPCG(seed, 0))}, nil
})

// gate holds what is told to "block", in this process until the end of the test, in others for ever.
var gate atomic.Pointer[chan struct{}]

func init() {
	never := make(chan struct{})
	gate.Store(&never)
}

var errFake = errors.New("fake: told to fail")

var _ = func() bool { supervisor.RegisterError("vecenv_test.errFake", errFake); return true }()

func (f *fake) Spaces() vecenv.Spaces {
	return vecenv.Spaces{
		Observation: vecenv.Space{Shape: []int{3}, Low: []float64{0}, High: []float64{1}},
		Action:      vecenv.Space{N: 2},
		Reward:      vecenv.Space{Shape: []int{1}, Low: []float64{0}, High: []float64{1}},
	}
}

func (f *fake) Seed(seed int64) error {
	if seed < 0 {
		return errFake
	}
	f.SeedValue, f.random = seed, rand.New(rand.NewPCG(uint64(seed), 0))
	return nil
}

func (f *fake) Reset(ctx context.Context, told string) ([]float64, error) {
	switch told {
	case "error":
		return nil, errFake
	case "error_once":
		if f.errorOnce++; f.errorOnce%2 == 0 {
			return nil, errFake
		}
	case "wait":
		if f.Steps > 0 {
			rest(pause)
		}
	case "block":
		<-*gate.Load()
	case "heed":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	f.clock, f.target = 0, 6*tick+time.Duration(f.random.Int64N(int64(6*tick)))
	return f.look(), nil
}

func (f *fake) Step(ctx context.Context, action string) (vecenv.Timestep[[]float64], error) {
	f.Steps++
	switch action {
	case "error":
		return vecenv.Timestep[[]float64]{}, errFake
	case "catched_error":
		f.Episodes++
		return vecenv.Timestep[[]float64]{Obs: f.look(), Done: true, Info: vecenv.Info{Abnormal: true}}, nil
	case "wait":
		rest(pause)
	case "block":
		<-*gate.Load()
	case "heed":
		<-ctx.Done()
		return vecenv.Timestep[[]float64]{}, ctx.Err()
	case "exit":
		os.Exit(3)
	case "panic":
		panic("fake: told to panic")
	}
	d := tick + time.Duration(f.random.Int64N(int64(tick)))
	rest(d)
	f.clock += d
	done := f.clock >= f.target
	if done {
		f.Episodes++
	}
	return vecenv.Timestep[[]float64]{Obs: f.look(), Reward: 1, Done: done}, nil
}

func (f *fake) Close() error { return nil }

func (f *fake) look() []float64 {
	f.Seen = []float64{f.random.Float64(), f.random.Float64(), f.random.Float64()}
	return f.Seen
}

// rest plays work.
func rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

type vector = vecenv.Vector[string, []float64, string]

// rig is a vector of fakes under test.
type rig struct {
	*vector
	t    *testing.T
	kind supervisor.ChildType
	ctx  context.Context
	rec  *testkit.Recorder[supervisor.Event, supervisor.EventKind]
}

// basic are the options of most tests.
func basic(kind supervisor.ChildType) vecenv.Options {
	return vecenv.Options{
		Kind: kind, EpisodeNum: 2, MaxTry: 5, RetryWait: 2 * time.Millisecond,
		ResetTimeout: ample, StepTimeout: ample, HangGrace: grace,
	}
}

// limited are those of the tests that outrun a limit.
func limited(kind supervisor.ChildType) vecenv.Options {
	o := basic(kind)
	o.MaxTry, o.ResetTimeout, o.StepTimeout = 1, tight, tight
	return o
}

func newRig(t *testing.T, o vecenv.Options) *rig { return newRigOf(t, o, making{}) }

func newRigOf(t *testing.T, o vecenv.Options, m making) *rig {
	t.Helper()
	open := make(chan struct{})
	gate.Store(&open)
	rec := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
	o.Supervisor = append(o.Supervisor, supervisor.WithEvents(rec.Record))
	v, err := vecenv.New(o, makeFake.With(m), makeFake.With(m), makeFake.With(m))
	require.NoError(t, err, "New")
	v.Seed(314)
	r := &rig{v, t, o.Kind, testkit.Context(t), rec}
	t.Cleanup(func() {
		close(open)
		_ = v.Close(context.Background())
		require.True(t, v.Closed(), "closed after Close")
	})
	return r
}

// eachKind runs a test for process and goroutine environments.
func eachKind(t *testing.T, f func(t *testing.T, kind supervisor.ChildType)) {
	for _, kind := range []supervisor.ChildType{supervisor.Process, supervisor.Goroutine} {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			f(t, kind)
		})
	}
}

func all(s string) []string { return []string{s, s, s} }

func (r *rig) launch(params ...string) {
	r.t.Helper()
	require.NoError(r.t, r.Launch(r.ctx, params), "Launch(%q)", params)
	r.allIn(vecenv.Run)
}

func (r *rig) step(actions ...string) []vecenv.Timestep[[]float64] {
	r.t.Helper()
	steps, err := r.Step(r.ctx, nil, actions)
	require.NoError(r.t, err, "Step(%q)", actions)
	require.Len(r.t, steps, number, "timesteps")
	return steps
}

func (r *rig) allIn(s vecenv.State) {
	r.t.Helper()
	require.Equal(r.t, []vecenv.State{s, s, s}, r.States(), "states")
}

// ready checks that all environments wait for an action, and that what Ready shows is what they remember.
func (r *rig) ready() {
	r.t.Helper()
	r.allIn(vecenv.Run)
	ids, seen := r.Ready()
	require.Equal(r.t, []int{0, 1, 2}, ids, "ready environments")
	remembered, err := vecenv.Attr[[]float64](r.ctx, r.vector, "Seen")
	require.NoError(r.t, err, "reading what they have seen")
	require.Equal(r.t, remembered, seen, "observations")
}

func (r *rig) timeIDs() []int64 {
	r.t.Helper()
	ids, err := vecenv.Attr[int64](r.ctx, r.vector, "TimeID")
	require.NoError(r.t, err, "reading the ids")
	return ids
}

// failed checks that err is the end of the vector, because of environment 0.
func (r *rig) failed(err error, tries int) {
	r.t.Helper()
	var failed *vecenv.FailedError
	require.ErrorAs(r.t, err, &failed, "the error of a vector that has failed")
	require.Equal(r.t, tries, failed.Tries, "tries")
	require.True(r.t, r.Closed(), "closed after a failure")
	r.allIn(vecenv.Void)
	require.ErrorIs(r.t, r.Err(), err, "why it is closed")
}

// receive receives n results, which are all of one kind.
func (r *rig) receive(n int, kind vecenv.Kind) []vecenv.Result[[]float64] {
	r.t.Helper()
	results := make([]vecenv.Result[[]float64], 0, n)
	for range n {
		result, err := r.Recv(r.ctx)
		require.NoError(r.t, err, "Recv, of %v", results)
		require.Equal(r.t, kind, result.Kind, "kind of %+v", result)
		results = append(results, result)
	}
	return results
}

// closed closes the vector. A goroutine that blocks on is the only thing that may be left, and it is named.
func (r *rig) closed() {
	r.t.Helper()
	err := r.Close(context.Background())
	if r.kind == supervisor.Goroutine && err != nil {
		var stuck *supervisor.StuckError
		require.ErrorAs(r.t, err, &stuck, "Close")
		return
	}
	require.NoError(r.t, err, "Close")
}

// nothingElse proves that no further result comes: a round of resets gives exactly its own, and none is left at the end.
func (r *rig) nothingElse() {
	r.t.Helper()
	require.NoError(r.t, r.ResetAsync(nil, all("")), "ResetAsync")
	seen := map[int]bool{}
	for _, result := range r.receive(number, vecenv.ResetResult) {
		require.NoError(r.t, result.Err, "reset of environment %d", result.Env)
		require.False(r.t, result.Auto, "environment %d: nothing but what was asked for", result.Env)
		seen[result.Env] = true
	}
	require.Len(r.t, seen, number, "environments that were reset, each once")
	r.closed()
	result, err := r.Recv(r.ctx)
	require.ErrorIs(r.t, err, vecenv.ErrClosed, "Recv after Close gave %+v", result)
}
