package restart_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/restart"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// epoch has no monotonic part: all arithmetic here is on plain times.
var epoch = time.Unix(1_700_000_000, 0)

func TestDecide(t *testing.T) {
	// An end of a life: when, whether it was ready and since when, and what follows.
	type end struct {
		at    time.Duration
		ready time.Duration // -1: it never was
		wait  time.Duration // -1: given up
	}
	for _, tt := range []struct {
		name   string
		policy restart.Policy
		ends   []end
	}{
		{"defaults: five at once, then no more", restart.Policy{}, []end{
			{0, -1, 0}, {0, -1, 100 * ms}, {0, -1, 200 * ms}, {0, -1, 400 * ms}, {0, -1, 800 * ms}, {0, -1, -1}, {0, -1, -1},
		}},
		{"three in five seconds", restart.Policy{Max: 3, Within: 5 * s}, []end{
			{0, -1, 0}, {1 * s, -1, 100 * ms}, {2 * s, -1, 200 * ms}, {5*s - 1, -1, -1},
		}},
		{"an end exactly as old as the window is out of it", restart.Policy{Max: 3, Within: 5 * s}, []end{
			{0, -1, 0}, {1 * s, -1, 100 * ms}, {2 * s, -1, 200 * ms}, {5 * s, -1, 400 * ms}, {6*s - 1, -1, -1},
		}},
		{"the window slides", restart.Policy{Max: 2, Within: 5 * s}, []end{
			{0, -1, 0}, {4 * s, -1, 100 * ms}, {6 * s, -1, 200 * ms}, {8 * s, -1, -1}, {9 * s, -1, 400 * ms},
		}},
		{"up to the cap", restart.Policy{Max: 20}, []end{
			{0, -1, 0},
			{0, -1, 100 * ms},
			{0, -1, 200 * ms},
			{0, -1, 400 * ms},
			{0, -1, 800 * ms},
			{0, -1, 1600 * ms},
			{0, -1, 3200 * ms},
			{0, -1, 6400 * ms},
			{0, -1, 12800 * ms},
			{0, -1, 25600 * ms},
			{0, -1, 30 * s},
			{0, -1, 30 * s},
		}},
		{"delays of its own", restart.Policy{First: 3 * s, Min: 5 * s, Cap: 7 * s}, []end{
			{0, -1, 3 * s}, {0, -1, 5 * s}, {0, -1, 7 * s},
		}},
		{"a cap under the default delay", restart.Policy{Cap: 10 * ms}, []end{
			{0, -1, 0}, {0, -1, 10 * ms}, {0, -1, 10 * ms},
		}},
		{"a delay over the default cap", restart.Policy{Min: time.Minute}, []end{
			{0, -1, 0}, {0, -1, time.Minute}, {0, -1, time.Minute},
		}},
		{"a quiet life brings the delays back to the start", restart.Policy{}, []end{
			{0, -1, 0}, {1 * s, 0, 100 * ms}, {11 * s, 1 * s, 0}, {12 * s, 11 * s, 100 * ms},
		}},
		{"a life a little too short for that", restart.Policy{}, []end{
			{0, -1, 0}, {1 * s, 0, 100 * ms}, {11*s - 1, 1 * s, 200 * ms},
		}},
		{"a start that takes long is no quiet life", restart.Policy{}, []end{
			{0, -1, 0}, {20 * s, -1, 100 * ms}, {40 * s, -1, 200 * ms}, {60 * s, -1, 400 * ms},
		}},
		{"temporary", restart.Policy{Type: restart.Temporary}, []end{{0, -1, -1}, {time.Hour, 0, -1}}},
		{"a clock that is set back a day", restart.Policy{Max: 2, Within: 5 * s}, []end{
			{24 * time.Hour, -1, 0}, {0, -1, 100 * ms}, {1 * s, -1, -1}, {5 * s, -1, 200 * ms},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, tt.policy.Validate(), "Validate")
			var h restart.History
			for i, e := range tt.ends {
				if e.ready >= 0 {
					h = h.Started(epoch.Add(e.ready))
				}
				d, next := restart.Decide(tt.policy, h, epoch.Add(e.at), false, 0.5)
				require.Equal(t, e.wait >= 0, d.Again, "end %d, at %v: is it started again", i+1, e.at)
				require.Equal(t, max(e.wait, 0), d.Wait, "end %d, at %v: delay", i+1, e.at)
				require.Equal(t, e.wait < 0 && tt.policy.Type != restart.Temporary, d.Limit, "end %d, at %v: is it the limit", i+1, e.at)
				h = next
			}
		})
	}
}

func TestOrderlyEnds(t *testing.T) {
	for _, tt := range []struct {
		name           string
		of             restart.Type
		orderly, again bool
	}{
		{"permanent, orderly", restart.Permanent, true, true},
		{"permanent, failed", restart.Permanent, false, true},
		{"transient, orderly", restart.Transient, true, false},
		{"transient, failed", restart.Transient, false, true},
		{"temporary, orderly", restart.Temporary, true, false},
		{"temporary, failed", restart.Temporary, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, _ := restart.Decide(restart.Policy{Type: tt.of}, restart.History{}, epoch, tt.orderly, 0.5)
			require.Equal(t, restart.Decision{Again: tt.again}, d, "what follows")
		})
	}
	full := restart.History{}
	for range restart.DefaultMax {
		_, full = restart.Decide(restart.Policy{}, full, epoch, false, 0.5)
	}
	d, _ := restart.Decide(restart.Policy{Type: restart.Transient}, full, epoch, true, 0.5)
	require.Equal(t, restart.Decision{}, d, "an orderly end of a transient child is no matter of the limit")
	d, _ = restart.Decide(restart.Policy{Type: restart.Transient}, full, epoch, false, 0.5)
	require.Equal(t, restart.Decision{Limit: true}, d, "a failure over the limit")
}

func TestJitter(t *testing.T) {
	_, h := restart.Decide(restart.Policy{}, restart.History{}, epoch, false, 0.5)
	for _, tt := range []struct {
		name string
		rnd  float64
		want time.Duration
	}{
		{"least", 0, 80 * ms},
		{"a quarter", 0.25, 90 * ms},
		{"none", 0.5, 100 * ms},
		{"nearly most", 0.75, 110 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, _ := restart.Decide(restart.Policy{}, h, epoch, false, tt.rnd)
			require.True(t, d.Again, "the second end")
			require.InDelta(t, tt.want, d.Wait, float64(time.Microsecond), "delay")
		})
	}
	d, _ := restart.Decide(restart.Policy{}, restart.History{}, epoch, false, 0.99)
	require.Zero(t, d.Wait, "the jitter of a restart at once")
}

func TestLongStreak(t *testing.T) {
	huge := restart.Policy{Max: math.MaxInt, Within: 1, Min: s, Cap: math.MaxInt64}
	var h restart.History
	now, longest := epoch, time.Duration(0)
	for range 5000 {
		now = now.Add(s)
		d, next := restart.Decide(huge, h, now, false, 0.999)
		require.True(t, d.Again, "restarts are not limited here")
		require.GreaterOrEqual(t, d.Wait, longest, "delays only grow")
		h, longest = next, d.Wait
	}
	require.Equal(t, time.Duration(math.MaxInt64), longest, "the delay at the end")
}

func TestHistoryIsAValue(t *testing.T) {
	var h restart.History
	for range 3 {
		_, h = restart.Decide(restart.Policy{}, h, epoch, false, 0.5)
	}
	// Two ways on from the same point must not see each other.
	_, left := restart.Decide(restart.Policy{}, h, epoch.Add(time.Second), false, 0.5)
	_, right := restart.Decide(restart.Policy{}, h, epoch.Add(2*time.Second), false, 0.5)
	_, leftAgain := restart.Decide(restart.Policy{}, h, epoch.Add(time.Second), false, 0.5)
	require.Equal(t, leftAgain, left, "a history after another was made from the same one")
	require.NotEqual(t, left, right, "histories with different ends")
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy restart.Policy
		text   string
	}{
		{"type", restart.Policy{Type: 7}, "unknown restart type"},
		{"number", restart.Policy{Max: -1}, "number of restarts is negative"},
		{"window", restart.Policy{Within: -1}, "window for restarts is negative"},
		{"first", restart.Policy{First: -1}, "restart delay is negative"},
		{"min", restart.Policy{Min: -1}, "restart delay is negative"},
		{"cap", restart.Policy{Cap: -1}, "restart delay is negative"},
		{"cap under min", restart.Policy{Min: 2, Cap: 1}, "longest restart delay is shorter"},
		{"cap under first", restart.Policy{First: 2, Cap: 1}, "longest restart delay is shorter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorContains(t, tt.policy.Validate(), tt.text)
		})
	}
}
