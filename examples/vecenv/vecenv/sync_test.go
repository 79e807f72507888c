package vecenv_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/vecenv/vecenv"
)

func TestD12StepsUntilDone(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.ManualReset = true
		r := newRig(t, o)
		require.NoError(t, r.SeedEach([]int64{314, 314, 314}), "SeedEach")
		require.True(t, r.Closed(), "closed before Launch")
		r.launch(all("test")...)
		seeds, err := vecenv.Attr[int64](r.ctx, r.vector, "SeedValue")
		require.NoError(t, err, "reading the seeds")
		require.Equal(t, []int64{314, 314, 314}, seeds, "seeds")
		for !r.Done() {
			ids, _ := r.Ready()
			steps, err := r.Step(r.ctx, ids, make([]string, len(ids)))
			require.NoError(t, err, "Step of %v", ids)
			require.Len(t, steps, len(ids), "timesteps of %v", ids)
			for i, s := range steps {
				require.NoError(t, s.Info.Err, "step of environment %d", ids[i])
			}
		}
		r.allIn(vecenv.Done)
		require.NoError(t, r.Close(context.Background()), "Close")
		require.True(t, r.Closed(), "closed after Close")
		r.allIn(vecenv.Void)
		require.ErrorIs(t, r.Reset(r.ctx, nil, nil), vecenv.ErrClosed, "Reset after Close")
		_, err = r.Step(r.ctx, nil, all(""))
		require.ErrorIs(t, err, vecenv.ErrClosed, "Step after Close")
		require.ErrorIs(t, r.Reset(r.ctx, []int{}, nil), supervisor.ErrBadArgs, "Reset of nothing")
		_, err = r.Step(r.ctx, []int{}, nil)
		require.ErrorIs(t, err, supervisor.ErrBadArgs, "Step of nothing")
	})
}

func TestD13LaunchFails(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, basic(kind))
		err := r.Launch(r.ctx, all("error"))
		r.failed(err, 5)
		require.ErrorIs(t, err, errFake, "the cause")
	})
}

func TestD14RetryReset(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, basic(kind))
		r.launch(all("test")...)
		r.step(all("")...)
		before := r.timeIDs()
		for range 2 {
			require.NoError(t, r.Reset(r.ctx, nil, []string{"error_once", "test", "test"}), "Reset")
		}
		require.Equal(t, 1, r.Stats()[0].FailedResets, "tries that failed")
		require.Equal(t, before, r.timeIDs(), "the environments are the same")
		r.ready()
	})
}

func TestD15RetryRenew(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.Retry = vecenv.RetryRenew
		r := newRig(t, o)
		r.launch(all("test")...)
		r.step(all("")...)
		before := r.timeIDs()
		for range 2 {
			require.NoError(t, r.Reset(r.ctx, nil, []string{"error_once", "test", "test"}), "Reset")
		}
		require.False(t, r.Closed(), "closed")
		after := r.timeIDs()
		require.NotEqual(t, before[0], after[0], "environment 0 is a new one")
		require.Equal(t, before[1:], after[1:], "the others are the same")
		require.Equal(t, 1, r.Stats()[0].Renewed, "how often environment 0 was replaced")
		seeds, err := vecenv.Attr[int64](r.ctx, r.vector, "SeedValue")
		require.NoError(t, err, "reading the seeds")
		require.Equal(t, []int64{314, 315, 316}, seeds, "the new one is seeded too")
		r.ready()

		steps := r.step("catched_error", "", "")
		require.True(t, steps[0].Info.Abnormal, "step 0 is abnormal")
		require.NoError(t, steps[0].Info.Err, "it is so by its own word")
		require.False(t, steps[1].Info.Abnormal || steps[2].Info.Abnormal, "the others are not")
		r.ready()
	})
}

func TestD16LaunchBlocks(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, limited(kind))
		err := r.Launch(r.ctx, all("block"))
		r.failed(err, 1)
		require.ErrorIs(t, err, supervisor.ErrTimeout, "the cause")
		r.launch("wait", "test", "test")
		r.ready()
	})
}

func TestD17StepBlocks(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, limited(kind))
		r.launch(all("test")...)
		r.step(all("")...)
		require.NoError(t, r.SetParam(0, "block"), "SetParam")
		require.Equal(t, []string{"block", "test", "test"}, r.Params(), "parameters")
		steps, err := r.Step(r.ctx, nil, []string{"block", "", ""})
		r.failed(err, 1)
		require.Len(t, steps, number, "timesteps")
		require.ErrorIs(t, steps[0].Info.Err, supervisor.ErrTimeout, "the step that was late")
		require.True(t, steps[0].Info.Abnormal, "the step that was late is abnormal")
		require.False(t, steps[1].Info.Abnormal || steps[2].Info.Abnormal, "the others are not")
		hung := r.rec.Wait(t, supervisor.EventHung)
		require.Contains(t, hung.Text, "fake", "the stacks of what hung")

		r.launch(all("test")...)
		for _, s := range r.step("wait", "", "") {
			require.False(t, s.Info.Abnormal, "a step after the second Launch: %v", s.Info.Err)
		}
	})
}

func TestD18Spaces(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, basic(kind))
		_, err := r.Spaces()
		require.ErrorIs(t, err, vecenv.ErrClosed, "Spaces before Launch")
		r.launch(all("test")...)
		got, err := r.Spaces()
		require.NoError(t, err, "Spaces")
		require.Equal(t, (&fake{}).Spaces(), got, "spaces")
	})
}

func TestD19AutoReset(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.EpisodeNum = 1000
		r := newRig(t, o)
		r.launch(all("test")...)
		r.ready()
		flags, done := 0, 0
		for range 10 {
			for _, s := range r.step(all("")...) {
				flags++
				if s.Done {
					done++
				}
			}
			r.ready()
		}
		require.Equal(t, 30, flags, "done flags")
		require.Positive(t, done, "of them true")
	})
}

func TestD33AttributesAndCounts(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, basic(kind))
		r.launch()
		_, err := vecenv.Attr[int](r.ctx, r.vector, "Nonsense")
		require.ErrorIs(t, err, supervisor.ErrNoSuchMethod, "an attribute that there is not")
		_, err = vecenv.Attr[[]float64](r.ctx, r.vector, "look")
		require.ErrorIs(t, err, supervisor.ErrNoSuchMethod, "a method that is not exported")
		got := make([]int, number)
		for !r.Done() {
			ids, _ := r.Ready()
			steps, err := r.Step(r.ctx, ids, make([]string, len(ids)))
			require.NoError(t, err, "Step of %v", ids)
			for i := range steps {
				got[ids[i]]++
			}
		}
		steps, err := vecenv.Attr[int](r.ctx, r.vector, "Steps")
		require.NoError(t, err, "reading the numbers of steps")
		require.Equal(t, steps, got, "steps that were received, and that were made")
		episodes, err := vecenv.Attr[int](r.ctx, r.vector, "Episodes")
		require.NoError(t, err, "reading the numbers of episodes")
		require.Equal(t, []int{2, 2, 2}, episodes, "episodes")
		for id, s := range r.Stats() {
			require.Equal(t, 2, s.Episodes, "episodes of environment %d as counted here", id)
		}
	})
}

// The upstream of old ended everything after one step that failed. Here that is a reset, and the end if it cannot be done.
func TestD34LaunchAgain(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.MaxTry = 1
		r := newRig(t, o)
		require.ErrorIs(t, r.Reset(r.ctx, nil, nil), vecenv.ErrClosed, "Reset before Launch")
		r.failed(r.Launch(r.ctx, []string{"error", "", ""}), 1)
		r.launch()
		require.ErrorIs(t, r.Launch(r.ctx, nil), vecenv.ErrLaunched, "Launch of what runs")
		steps := r.step("error", "", "panic")
		require.ErrorIs(t, steps[0].Info.Err, errFake, "the step that failed")
		var panicked *supervisor.PanicError
		require.ErrorAs(t, steps[2].Info.Err, &panicked, "the step that panicked")
		r.ready()
		require.NoError(t, r.SetParam(0, "error"), "SetParam")
		steps, err := r.Step(r.ctx, nil, []string{"error", "", ""})
		r.failed(err, 1)
		require.Len(t, steps, number, "timesteps")
		r.launch()
	})
}

func TestD36ManualReset(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.ManualReset = true
		r := newRig(t, o)
		r.launch()
		episodes := make([]int, number)
		for !r.Done() {
			ids, _ := r.Ready()
			steps, err := r.Step(r.ctx, ids, make([]string, len(ids)))
			require.NoError(t, err, "Step of %v", ids)
			for i, s := range steps {
				if !s.Done {
					continue
				}
				if episodes[ids[i]]++; episodes[ids[i]] < o.EpisodeNum {
					require.NoError(t, r.Reset(r.ctx, ids[i:i+1], nil), "Reset of environment %d", ids[i])
				}
			}
		}
		require.Equal(t, []int{2, 2, 2}, episodes, "episodes")
		r.allIn(vecenv.Done)
	})
}
