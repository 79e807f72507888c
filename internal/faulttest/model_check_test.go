package faulttest_test

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/workerlink/supervisor/internal/childtest"
)

// modelMix says how often each operation is drawn.
var modelMix = []string{
	opSend, opSend, opSend, opSend, opSend, opSend, opTrySend, opTrySend, opTwice, opDo, opDo, opDo, opGo, opGo,
	opCancel, opCancel, opRecv, opRecv, opRecv, opRecvAll, opRecvAll, opRecvAll, opOnReply, opOnReply,
	opRestart, opUnregister, opRegister, opKill, opFreeze, opStartLink, opShutdown, opClose,
}

// drawModelOp draws one operation.
var drawModelOp = rapid.Custom(func(t *rapid.T) modelOp {
	const ms = time.Millisecond
	op := modelOp{
		Do:    rapid.SampledFrom(modelMix).Draw(t, "do"),
		Child: rapid.SampledFrom([]int{0, 0, 1, 1, 2, -1, -2}).Draw(t, "child"),
	}
	switch op.Do {
	case opSend, opTrySend, opTwice, opDo, opGo:
		op.Takes = rapid.SampledFrom([]time.Duration{0, 0, 0, ms, ms, 4 * ms, 12 * ms}).Draw(t, "takes")
		op.How = rapid.SampledFrom([]string{byValue, byValue, byValue, byError, byPanic}).Draw(t, "how")
		if op.Do != opGo {
			op.Timeout = rapid.SampledFrom([]time.Duration{0, 0, 0, 0, 1, ms, 4 * ms, time.Hour}).Draw(t, "timeout")
		}
		op.Limit = rapid.SampledFrom([]time.Duration{0, 0, 0, 0, 0, 3 * ms, -1}).Draw(t, "limit")
	case opCancel, opRecvAll, opOnReply:
		op.Pick = rapid.SliceOfN(rapid.IntRange(0, 12), 1, 5).Draw(t, "pick")
		op.Limit = rapid.SampledFrom([]time.Duration{0, 0, 0, 2 * ms, 8 * ms, -1}).Draw(t, "limit")
		op.Ignore = rapid.Bool().Draw(t, "ignore")
		op.Script = rapid.SampledFrom([]string{scriptNone, scriptSend, scriptSend, scriptAdd, scriptGhost, scriptFail}).Draw(t, "script")
	case opRecv:
		op.Limit = rapid.SampledFrom([]time.Duration{0, 2 * ms, -1}).Draw(t, "limit")
		op.Ignore = rapid.Bool().Draw(t, "ignore")
	case opRegister:
		op.Ignore = rapid.Bool().Draw(t, "temporary")
	case opFreeze:
		op.Takes = rapid.SampledFrom([]time.Duration{ms, 5 * ms}).Draw(t, "for")
	case opShutdown:
		op.Limit = rapid.SampledFrom([]time.Duration{0, 0, 2 * ms, -1}).Draw(t, "limit")
	}
	return op
})

// drawModelRules draws what a run begins with.
func drawModelRules(t *rapid.T) modelRules {
	n := rapid.IntRange(1, 3).Draw(t, "children")
	return modelRules{
		Inbox:     rapid.SampledFrom([]int{4, 1000, 1000}).Draw(t, "inbox"),
		Queue:     rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "queue"),
		Temporary: rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "temporary"),
		Wide:      rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "wide"),
	}
}

// TestModelOfManyCallers holds a supervisor under callers that do everything at once against what may come of it. The plan
// is drawn first, as data; a failure shows it, with the history of each request that it concerns. A plan that failed once
// may need many runs to fail again, because the system's timing is not part of it.
func TestModelOfManyCallers(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		if k.Can.Process {
			modelChecks(t, times(4, 1000)) // each starts some processes
		} else {
			modelChecks(t, times(25, 5000))
		}
		rapid.Check(t, func(rt *rapid.T) {
			rules := drawModelRules(rt)
			batch := rapid.SliceOfN(rapid.SliceOfN(drawModelOp, 1, 6), 1, 4)
			plan := rapid.SliceOfN(batch, 1, 6).Draw(rt, "plan")
			r := openModel(t, rt, k, rules)
			defer r.sup.Close() // also when the check has failed
			for _, b := range plan {
				r.run(b)
			}
			r.finish()
		})
	})
}

// modelChecks sets how many plans rapid draws, unless the command line does.
func modelChecks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks.DefValue != "100" { // by its environment
		return
	}
	before := checks.Value.String()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f == checks })
	if given {
		return
	}
	require.NoError(t, flag.Set(checks.Name, strconv.Itoa(n)))
	t.Cleanup(func() { require.NoError(t, flag.Set(checks.Name, before)) })
}
