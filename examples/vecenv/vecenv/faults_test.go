package vecenv_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/vecenv/vecenv"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestD35Limits(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := limited(kind)
		o.HangGrace = ample // nothing hangs here
		o.Child = []supervisor.ChildOption{supervisor.WithStartTimeout(5 * time.Second)}
		short := o
		short.Child = []supervisor.ChildOption{supervisor.WithStartTimeout(tight)}
		slow := making{SlowWhile: filepath.Join(t.TempDir(), "slow")}
		require.NoError(t, os.WriteFile(slow.SlowWhile, nil, 0o600), "making the start slow")

		r := newRigOf(t, short, slow)
		err := r.Launch(r.ctx, nil)
		var start *supervisor.StartError
		require.ErrorAs(t, err, &start, "Launch of what does not get ready")
		require.ErrorIs(t, err, supervisor.ErrTimeout, "its cause")
		require.True(t, r.Closed(), "closed after it")

		r = newRigOf(t, o, slow)
		require.NoError(t, os.Remove(slow.SlowWhile), "making the start fast")
		r.failed(r.Launch(r.ctx, []string{"heed", "", ""}), 1)
		r.launch()
		steps := r.step("heed", "wait", "")
		require.ErrorIs(t, steps[0].Info.Err, context.DeadlineExceeded, "the step that was late")
		require.NoError(t, steps[1].Info.Err, "the step that was only slow")
		r.ready()
		require.Zero(t, r.Stats()[0].Renewed, "an environment that heeds its deadline is kept")
	})
}

func TestHungIsRenewedAndStallsNobody(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := limited(kind)
		o.EpisodeNum = 0
		r := newRig(t, o)
		r.launch()
		before := r.timeIDs()
		require.NoError(t, r.StepAsync(nil, []string{"block", "", ""}), "StepAsync")
		others, auto := 0, false
		for !auto {
			result, err := r.Recv(r.ctx)
			require.NoError(t, err, "Recv")
			switch {
			case result.Env != 0:
				require.NoError(t, result.Err, "a %v of environment %d", result.Kind, result.Env)
				others++
				if !result.Step.Done {
					require.NoError(t, r.StepAsync([]int{result.Env}, []string{""}), "StepAsync")
				}
			case result.Kind == vecenv.StepResult:
				require.ErrorIs(t, result.Err, supervisor.ErrTimeout, "the step that hangs")
			default:
				require.True(t, result.Auto, "the reset after it follows by itself")
				require.NoError(t, result.Err, "that reset")
				auto = true
			}
		}
		require.Greater(t, others, 6, "results of the others meanwhile")
		require.Equal(t, vecenv.Run, r.States()[0], "state of environment 0")
		after := r.timeIDs()
		require.NotEqual(t, before[0], after[0], "environment 0 is a new one")
		require.Equal(t, before[1:], after[1:], "the others are the same")
		require.Equal(t, 1, r.Stats()[0].Renewed, "how often environment 0 was replaced")
		require.Zero(t, r.Stats()[0].FailedResets, "resets that were wasted on what hung")
	})
}

func TestRetryWaitStallsNobody(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.RetryWait, o.ManualReset = time.Hour, true
		r := newRig(t, o)
		require.NoError(t, r.LaunchAsync(r.ctx, []string{"error", "", ""}), "LaunchAsync")
		r.receive(2, vecenv.ResetResult)
		for range 3 {
			steps, err := r.Step(r.ctx, []int{2, 1}, []string{"", "wait"})
			require.NoError(t, err, "Step of the others")
			require.Len(t, steps, 2, "timesteps")
		}
		require.Equal(t, []vecenv.State{vecenv.Waiting, vecenv.Run, vecenv.Run}, r.States(), "states")
		require.ErrorIs(t, r.ResetAsync([]int{0}, nil), vecenv.ErrBusy, "a second reset of what is being reset")
		r.closed()
		result, err := r.Recv(r.ctx)
		require.NoError(t, err, "Recv of what was open at Close")
		require.ErrorIs(t, result.Err, vecenv.ErrClosed, "its verdict")
		_, err = r.Recv(r.ctx)
		require.ErrorIs(t, err, vecenv.ErrClosed, "Recv of nothing")
	})
}

// killIdle kills the process of an environment that has nothing to do, and waits until the next one is there.
func (r *rig) killIdle(id int) {
	r.t.Helper()
	pids, err := vecenv.Attr[int](r.ctx, r.vector, "Pid")
	require.NoError(r.t, err, "reading the process ids")
	p, err := os.FindProcess(pids[id])
	require.NoError(r.t, err, "finding the process of environment %d", id)
	require.NoError(r.t, p.Kill(), "killing it")
	r.rec.WaitFor(r.t, "its end", func(e supervisor.Event) bool { return e.Kind == supervisor.EventExited && e.Pid == pids[id] })
	r.rec.WaitFor(r.t, "the next one", func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventStarted && e.ProcID == id && e.Pid != pids[id]
	})
}

func TestDeaths(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		if kind == supervisor.Goroutine {
			t.Skip("only a process can die alone")
		}
		r := newRig(t, basic(kind))
		r.launch()
		steps := r.step("", "exit", "")
		var exit *supervisor.ExitError
		require.ErrorAs(t, steps[1].Info.Err, &exit, "the step in which the process ended")
		require.Equal(t, 3, exit.Code, "its exit code")
		r.ready()

		r.killIdle(2)
		steps = r.step(all("")...)
		require.ErrorIs(t, steps[2].Info.Err, vecenv.ErrReplaced, "a step of an environment that was not reset")
		r.ready()
		r.killIdle(0)
		require.NoError(t, r.Reset(r.ctx, nil, nil), "Reset after another death")
		r.ready()
		seeds, err := vecenv.Attr[int64](r.ctx, r.vector, "SeedValue")
		require.NoError(t, err, "reading the seeds")
		require.Equal(t, []int64{314, 315, 316}, seeds, "the new ones are seeded too")
		for id, want := range []int{1, 1, 1} {
			require.Equal(t, want, r.Stats()[id].Renewed, "how often environment %d was replaced", id)
		}
	})
}

func TestCallerWithdraws(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := limited(kind)
		o.ResetTimeout, o.StepTimeout, o.HangGrace = 0, 0, 3*grace
		r := newRig(t, o)
		r.launch()
		before := r.timeIDs()
		ctx, cancel := context.WithTimeout(r.ctx, tight)
		defer cancel()
		steps, err := r.Step(ctx, nil, []string{"heed", "block", ""})
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Step whose context ends")
		require.Len(t, steps, number, "timesteps")
		require.Error(t, steps[0].Info.Err, "a step that is withdrawn")
		require.Error(t, steps[1].Info.Err, "a step that is withdrawn")
		require.NoError(t, steps[2].Info.Err, "a step that was in time")
		for range 2 { // resets that follow by themselves
			r.rec.WaitFor(t, "the end of the life that blocks", func(e supervisor.Event) bool {
				return e.Kind == supervisor.EventStarted && e.ProcID == 1
			})
		}
		after := r.timeIDs()
		require.Equal(t, before[0], after[0], "an environment that heeds its context is kept")
		require.NotEqual(t, before[1], after[1], "one that does not is replaced")

		ctx, cancel = context.WithCancel(r.ctx)
		cancel()
		require.ErrorIs(t, newRig(t, o).Launch(ctx, nil), supervisor.ErrCanceled, "Launch with a context that has ended")
	})
}

func TestCloseEndsCalls(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, basic(kind))
		ended := make(chan error, 1)
		go func() { ended <- r.Launch(r.ctx, all("heed")) }()
		testkit.Until(t, "the first resets", func() bool { return len(r.Params()) == number })
		r.closed()
		require.ErrorIs(t, testkit.Receive(t, ended, "the end of Launch"), vecenv.ErrClosed, "Launch")

		r.launch()
		var steps []vecenv.Timestep[[]float64]
		go func() {
			var err error
			steps, err = r.Step(r.ctx, []int{1, 2}, all("heed")[:2])
			ended <- err
		}()
		testkit.Until(t, "the steps", func() bool { return r.States()[2] == vecenv.Stepping })
		r.closed()
		require.ErrorIs(t, testkit.Receive(t, ended, "the end of Step"), vecenv.ErrClosed, "Step")
		require.Len(t, steps, 2, "timesteps")
		for _, s := range steps {
			require.True(t, s.Info.Abnormal, "a step that was cut short")
			require.ErrorIs(t, s.Info.Err, vecenv.ErrClosed, "why")
		}
		require.NoError(t, r.Close(r.ctx), "Close again")
	})
}

func TestGiveUpEnv(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.GiveUp, o.MaxTry = vecenv.GiveUpEnv, 2
		r := newRig(t, o)
		err := r.Launch(r.ctx, []string{"", "error", ""})
		var failed *vecenv.FailedError
		require.ErrorAs(t, err, &failed, "Launch")
		require.Equal(t, []int{1, 2}, []int{failed.Env, failed.Tries}, "environment and tries")
		require.False(t, r.Closed(), "closed")
		require.Equal(t, []vecenv.State{vecenv.Run, vecenv.Error, vecenv.Run}, r.States(), "states")
		_, err = r.Step(r.ctx, nil, all(""))
		require.ErrorIs(t, err, vecenv.ErrBusy, "Step of all")
		ids, _ := r.Ready()
		steps, err := r.Step(r.ctx, ids, []string{"", ""})
		require.NoError(t, err, "Step of those that are ready")
		require.Len(t, steps, 2, "timesteps")
		require.NoError(t, r.Reset(r.ctx, []int{1}, []string{""}), "Reset of the one that was given up")
		r.ready()
	})
}

// An environment that never comes to the end of an episode would be reset for ever.
func TestAbnormalEpisodesAreBounded(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.GiveUp, o.MaxAbnormal = vecenv.GiveUpEnv, 3
		r := newRig(t, o)
		r.launch()
		fails := func(n int) (err error) {
			for range n {
				require.NoError(t, err, "Step of one that is reset")
				var steps []vecenv.Timestep[[]float64]
				steps, err = r.Step(r.ctx, []int{1}, []string{"error"})
				require.Len(t, steps, 1, "timesteps")
				require.ErrorIs(t, steps[0].Info.Err, errFake, "why the step failed")
			}
			return err
		}
		require.NoError(t, fails(2), "Step")
		steps, err := r.Step(r.ctx, []int{1}, []string{"catched_error"})
		require.NoError(t, err, "Step that ends an episode")
		require.True(t, steps[0].Done, "the end of an episode, which begins the count anew")
		var failed *vecenv.AbnormalError
		requireGivenUp := func(err error) {
			require.ErrorAs(t, err, &failed, "the error of an environment that is given up")
			require.Equal(t, []int{1, 3}, []int{failed.Env, failed.Episodes}, "environment and episodes")
			require.ErrorIs(t, err, errFake, "its cause")
		}
		requireGivenUp(fails(3))
		require.Equal(t, []vecenv.State{vecenv.Run, vecenv.Error, vecenv.Run}, r.States(), "states")
		require.NoError(t, r.Reset(r.ctx, []int{1}, nil), "Reset of the one that was given up")
		require.NoError(t, fails(2), "Step after a Reset")
		require.NoError(t, r.StepAsync([]int{1}, []string{"error"}), "StepAsync")
		require.ErrorIs(t, r.receive(1, vecenv.StepResult)[0].Err, errFake, "the step")
		last := r.receive(1, vecenv.ResetResult)[0]
		require.True(t, last.Auto, "what follows by itself")
		requireGivenUp(last.Err)

		o.GiveUp = vecenv.GiveUpAll
		r = newRig(t, o)
		r.launch()
		requireGivenUp(func() (err error) {
			for err == nil {
				ids, _ := r.Ready()
				_, err = r.Step(r.ctx, ids, []string{"", "error", ""})
			}
			return err
		}())
		require.True(t, r.Closed(), "closed")
		requireGivenUp(r.Err())
	})
}

func TestSeedFails(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, basic(kind))
		require.NoError(t, r.SeedSome(map[int]int64{0: -1, 2: 7}), "SeedSome")
		err := r.Launch(r.ctx, nil)
		r.failed(err, 5)
		require.ErrorIs(t, err, errFake, "the cause")
	})
}

func TestRefusals(t *testing.T) {
	bad := map[string]vecenv.Options{
		"negative MaxTry":      {MaxTry: -1},
		"negative EpisodeNum":  {EpisodeNum: -1},
		"negative MaxAbnormal": {MaxAbnormal: -1},
		"negative StepTimeout": {StepTimeout: -1},
		"unknown Retry":        {Retry: 2},
		"unknown GiveUp":       {GiveUp: -1},
	}
	for name, o := range bad {
		_, err := vecenv.New(o, makeFake.With(making{}))
		require.ErrorIs(t, err, supervisor.ErrBadArgs, "New with %s", name)
	}
	_, err := vecenv.New[string, []float64, string](vecenv.Options{})
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "New without environments")

	r := newRig(t, basic(supervisor.Goroutine))
	require.ErrorIs(t, r.SeedEach([]int64{1}), supervisor.ErrBadArgs, "one seed for three environments")
	require.ErrorIs(t, r.SeedSome(map[int]int64{3: 1}), supervisor.ErrBadArgs, "a seed for nobody")
	require.ErrorIs(t, r.Launch(r.ctx, []string{""}), supervisor.ErrBadArgs, "one parameter for three environments")
	_, err = r.Recv(r.ctx)
	require.ErrorIs(t, err, vecenv.ErrClosed, "Recv before Launch")
	r.launch()
	for name, call := range map[string]func() error{
		"a place that there is not": func() error { return r.Reset(r.ctx, []int{3}, nil) },
		"one named twice":           func() error { return r.ResetAsync([]int{1, 1}, nil) },
		"too few parameters":        func() error { return r.Reset(r.ctx, nil, []string{""}) },
		"too few actions":           func() error { return r.StepAsync(nil, []string{""}) },
		"a parameter for nobody":    func() error { return r.SetParam(-1, "") },
	} {
		require.ErrorIs(t, call(), supervisor.ErrBadArgs, "%s", name)
	}
	r.ready()
	require.NoError(t, r.StepAsync([]int{1}, []string{"wait"}), "StepAsync")
	_, err = r.Step(r.ctx, nil, all(""))
	require.ErrorIs(t, err, vecenv.ErrBusy, "Step while one is at work")
	r.receive(1, vecenv.StepResult)
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	_, err = r.Recv(ctx)
	require.ErrorIs(t, err, supervisor.ErrCanceled, "Recv whose context has ended")
	r.ready()
}
