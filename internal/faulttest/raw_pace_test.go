//go:build linux || darwin

package faulttest_test

// Replies that come byte by byte, all at once, or in two halves.

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestF06OneByteAtATime(t *testing.T) {
	r := newRawRig(t)
	r.played(t, "slow")
	for n := range 20 {
		got, err := r.call(t, n<<n)
		require.NoError(t, err, "call %d", n)
		require.Equal(t, n<<n, got, "result of call %d", n)
	}
}

func TestF07ManyRepliesInOneWrite(t *testing.T) {
	const many = 10_000
	r := newRawRig(t)
	r.limits.Queue = many // the raw worker wants to have them all
	r.played(t, "gather", strconv.Itoa(many))
	for range times(1, 3) {
		r.echoAll(t, many)
	}
}

func TestF07RepliesSplitAnywhere(t *testing.T) {
	const together = 3
	r := newRawRig(t)
	r.played(t, "split", strconv.Itoa(together))
	for range together * len(rawReply(1, rawInt(1))) {
		r.echoAll(t, together)
	}
}

// echoAll sends requests to the raw worker and asserts that the replies come in order, each to its own.
func (r *rawRig) echoAll(t testing.TB, n int) {
	t.Helper()
	ctx := testkit.Context(t)
	var want []supervisor.SendPayload
	for i := range n {
		want = append(want, supervisor.NewSendPayload(r.raw, "Echo", i))
	}
	send(t, r.sup, want...)
	for i, p := range want {
		got, err := r.sup.Recv(ctx)
		require.NoError(t, err, "reply %d", i)
		require.Equal(t, p.ReqID, got.ReqID, "request of reply %d", i)
		require.Equal(t, i, got.Data, "value of reply %d", i)
	}
}
