package vecenv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/vecenv/vecenv"
)

// untilFailed receives until the vector says that it has failed, and returns the results before. Each request has one.
func (r *rig) untilFailed(tries int) (results []vecenv.Result[[]float64]) {
	r.t.Helper()
	for {
		result, err := r.Recv(r.ctx)
		if err != nil {
			r.failed(err, tries)
			return results
		}
		results = append(results, result)
	}
}

func TestD20Async(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.ManualReset = true
		r := newRig(t, o)
		require.NoError(t, r.LaunchAsync(r.ctx, all("test")), "LaunchAsync")
		for !r.Done() {
			result, err := r.Recv(r.ctx)
			require.NoError(t, err, "Recv")
			require.NoError(t, result.Err, "a %v of environment %d", result.Kind, result.Env)
			if result.Kind == vecenv.ResetResult {
				require.Len(t, result.Obs, 3, "observation of a reset")
			} else {
				require.Len(t, result.Step.Obs, 3, "observation of a step")
			}
			if !result.Step.Done {
				require.NoError(t, r.StepAsync([]int{result.Env}, []string{""}), "StepAsync")
			}
		}
		r.allIn(vecenv.Done)
	})
}

func TestD21AsyncLaunchFails(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, basic(kind))
		require.NoError(t, r.LaunchAsync(r.ctx, all("error")), "LaunchAsync")
		results := r.untilFailed(5)
		require.Len(t, results, number, "results, one for each reset")
		for _, result := range results {
			require.Error(t, result.Err, "reset of environment %d", result.Env)
		}
		require.NoError(t, r.Close(r.ctx), "Close")
	})
}

// asyncResets does one round of steps and two of resets, of which one of environment 0 fails at first.
func asyncResets(r *rig) {
	r.t.Helper()
	require.NoError(r.t, r.StepAsync(nil, all("")), "StepAsync")
	r.receive(number, vecenv.StepResult)
	for range 2 {
		require.NoError(r.t, r.ResetAsync(nil, []string{"error_once", "test", "test"}), "ResetAsync")
		for _, result := range r.receive(number, vecenv.ResetResult) {
			require.NoError(r.t, result.Err, "reset of environment %d", result.Env)
			require.Len(r.t, result.Obs, 3, "its observation")
		}
	}
	require.Equal(r.t, 1, r.Stats()[0].FailedResets, "tries that failed")
}

func TestD22AsyncRetryReset(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, basic(kind))
		r.launch(all("test")...)
		before := r.timeIDs()
		asyncResets(r)
		require.Equal(t, before, r.timeIDs(), "the environments are the same")
		r.ready()
		r.nothingElse()
	})
}

func TestD23AsyncRetryRenew(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := basic(kind)
		o.Retry = vecenv.RetryRenew
		r := newRig(t, o)
		r.launch(all("test")...)
		before := r.timeIDs()
		asyncResets(r)
		after := r.timeIDs()
		require.NotEqual(t, before[0], after[0], "environment 0 is a new one")
		require.Equal(t, before[1:], after[1:], "the others are the same")
		r.ready()

		require.NoError(t, r.StepAsync(nil, []string{"catched_error", "", ""}), "StepAsync")
		steps, resets := 0, 0
		for range number + 1 { // the episode of environment 0 is over, so it is reset
			result, err := r.Recv(r.ctx)
			require.NoError(t, err, "Recv")
			if result.Kind == vecenv.ResetResult {
				resets++
				require.True(t, result.Auto, "nobody has asked for this reset")
				require.Zero(t, result.Env, "environment that is reset")
				continue
			}
			steps++
			require.Equal(t, result.Env == 0, result.Step.Info.Abnormal, "step of environment %d is abnormal", result.Env)
		}
		require.Equal(t, []int{3, 1}, []int{steps, resets}, "steps and resets")
		r.ready()
		r.nothingElse()
	})
}

func TestD24AsyncLaunchBlocks(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		o := limited(kind)
		o.Retry = vecenv.RetryRenew
		r := newRig(t, o)
		require.NoError(t, r.LaunchAsync(r.ctx, all("block")), "LaunchAsync")
		results := r.untilFailed(1)
		require.Len(t, results, number, "results, one for each reset")

		require.NoError(t, r.LaunchAsync(r.ctx, []string{"wait", "test", "test"}), "LaunchAsync again")
		for _, result := range r.receive(number, vecenv.ResetResult) {
			require.NoError(t, result.Err, "reset of environment %d", result.Env)
		}
		r.ready()
		r.nothingElse()
	})
}

func TestD25AsyncStepBlocks(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := newRig(t, limited(kind))
		r.launch(all("test")...)
		require.NoError(t, r.SetParam(0, "block"), "SetParam")
		require.NoError(t, r.StepAsync(nil, []string{"block", "", ""}), "StepAsync")
		results := r.untilFailed(1)
		require.Len(t, results, number+1, "results, one for each step and one for the reset")
		for _, result := range results {
			if result.Kind == vecenv.ResetResult || result.Env == 0 {
				require.Error(t, result.Err, "the %v of environment %d", result.Kind, result.Env)
				continue
			}
			require.NoError(t, result.Err, "step of environment %d", result.Env)
		}
		require.ErrorIs(t, results[2].Err, supervisor.ErrTimeout, "the step that was late, which comes third")

		r.launch(all("test")...)
		require.NoError(t, r.StepAsync(nil, []string{"wait", "", ""}), "StepAsync again")
		for _, result := range r.receive(number, vecenv.StepResult) {
			require.NoError(t, result.Err, "step of environment %d", result.Env)
		}
		r.nothingElse()
	})
}
