package faulttest_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The command line or the environment asks for another seed or time.
var (
	chaosSeedFlag = flag.Uint64("chaos.seed", 0, "seed of TestChaos; 0 draws one (environment: CHAOS_SEED)")
	chaosForFlag  = flag.Duration("chaos.for", 0, "time that TestChaos takes (environment: CHAOS_FOR; default 3s, 10m under -tags soak)")
)

// chaosSettings are the seed and the time.
func chaosSettings(t *testing.T) (seed uint64, d time.Duration) {
	t.Helper()
	seed, d = *chaosSeedFlag, *chaosForFlag
	var err error
	if text := os.Getenv("CHAOS_SEED"); seed == 0 && text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "CHAOS_SEED")
	}
	if text := os.Getenv("CHAOS_FOR"); d == 0 && text != "" {
		d, err = time.ParseDuration(text)
		require.NoError(t, err, "CHAOS_FOR")
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	if d == 0 {
		d = 3 * time.Second
		if soak {
			d = 10 * time.Minute
		}
	}
	return seed, d
}

// The operations of callers, of those who do harm, and of the one who ends supervisors.
const (
	chaosCall    = "Call"
	chaosGo      = "Go"
	chaosRecv    = "Send and Recv"
	chaosRecvAll = "Send and RecvAll"
	chaosOnReply = "Send and OnReply"
	chaosCancel  = "Send and Cancel"

	chaosKill    = "kill -9"
	chaosFreeze  = "freeze"
	chaosRestart = "Restart"
	chaosReplace = "Unregister and Register"
	chaosPause   = "pause"

	chaosDrain = "Shutdown"
	chaosHurry = "Shutdown that is in a hurry"
	chaosEnd   = "Close"
	chaosLife  = "the end of StartLink's ctx"
)

// chaosOp is one operation of a plan.
type chaosOp struct {
	Do       string
	Place    int           // of the child
	Requests []chaosToil   // one, or several to send
	Limit    time.Duration // of the call's ctx; 0: none
	Wait     time.Duration // before, or of the fault
	Cancel   bool          // the future
}

// chaosToil is one request.
type chaosToil struct {
	Place   int
	Method  string
	How     string
	Takes   time.Duration
	Timeout time.Duration
	Size    int
	Line    int
}

// chaosPlan is what one actor will do. Everything is drawn from the seed and the actor's number alone, each operation
// after the one before it, whatever comes of them.
type chaosPlan struct {
	rnd  *rand.Rand
	draw func(*chaosPlan) chaosOp
}

func newChaosPlan(seed uint64, actor int, draw func(*chaosPlan) chaosOp) *chaosPlan {
	return &chaosPlan{rand.New(rand.NewPCG(seed, uint64(actor))), draw}
}

func (p *chaosPlan) next() chaosOp { return p.draw(p) }

func chaosOneOf[T any](p *chaosPlan, list ...T) T { return list[p.rnd.IntN(len(list))] }

// upTo is a time from zero to d.
func (p *chaosPlan) upTo(d time.Duration) time.Duration { return time.Duration(p.rnd.Int64N(int64(d))) }

// caller draws an operation of a caller.
func (p *chaosPlan) caller() chaosOp {
	op := chaosOp{
		Do: chaosOneOf(p, chaosCall, chaosCall, chaosCall, chaosGo, chaosGo, chaosRecv, chaosRecvAll, chaosRecvAll,
			chaosOnReply, chaosCancel),
		Limit: chaosOneOf(p, 0, 0, 0, 0, time.Millisecond, 10*time.Millisecond, 200*time.Millisecond),
	}
	op.Cancel = p.rnd.IntN(4) == 0
	n := 1
	if op.Do != chaosCall && op.Do != chaosGo {
		n += p.rnd.IntN(8)
	}
	for range n {
		op.Requests = append(op.Requests, p.toil())
	}
	return op
}

// toil draws a request.
func (p *chaosPlan) toil() chaosToil {
	const ms = time.Millisecond
	r := chaosToil{
		Place: p.rnd.IntN(len(chaosPlaces)), Method: "Toil", How: byValue,
		Takes:   chaosOneOf(p, 0, 0, 0, ms, 2*ms, 10*ms),
		Timeout: chaosOneOf(p, 0, 0, 0, 0, 0, 1, 2*ms, 20*ms, time.Minute),
	}
	switch kind := p.rnd.IntN(1000); {
	case kind < 4:
		r.How = byExit
	case kind < 7:
		r.How = byCrash
	case kind < 60:
		r.How = byError
	case kind < 80:
		r.How = byPanic
	case kind < 180:
		r.Method, r.Size = "Carry", p.rnd.IntN(chaosOneOf(p, 1, 100, 5000, 5000, 300_000, 2_000_000)+1)
	case kind < 190:
		r.Method, r.Size, r.Line = "Shout", chaosOneOf(p, 1<<16, 1<<20, 4<<20), chaosOneOf(p, 1<<14, 60_000, 100_000)
	}
	return r
}

// fault draws an operation of one who does harm.
func (p *chaosPlan) fault() chaosOp {
	op := chaosOp{
		Do:    chaosOneOf(p, chaosKill, chaosKill, chaosKill, chaosFreeze, chaosFreeze, chaosRestart, chaosRestart, chaosRestart, chaosReplace),
		Place: p.rnd.IntN(len(chaosPlaces)),
	}
	op.Wait = p.upTo(80 * time.Millisecond)
	op.Limit = chaosOneOf(p, 0, 0, 0, 0, 50*time.Millisecond)
	return op
}

// end draws how a round ends, and when.
func (p *chaosPlan) end() chaosOp {
	return chaosOp{
		Do:    chaosOneOf(p, chaosDrain, chaosDrain, chaosHurry, chaosEnd, chaosLife),
		Wait:  200*time.Millisecond + p.upTo(1500*time.Millisecond),
		Limit: p.upTo(20 * time.Millisecond),
	}
}

// TestChaosPlan says what a seed replays.
func TestChaosPlan(t *testing.T) {
	for name, draw := range map[string]func(*chaosPlan) chaosOp{
		"callers": (*chaosPlan).caller, "faults": (*chaosPlan).fault, "ends": (*chaosPlan).end,
	} {
		t.Run(name, func(t *testing.T) {
			one, again, actor, seed := newChaosPlan(1, 1, draw), newChaosPlan(1, 1, draw), newChaosPlan(1, 2, draw), newChaosPlan(2, 1, draw)
			var plans [4][]chaosOp
			for range 200 {
				for i, p := range []*chaosPlan{one, again, actor, seed} {
					plans[i] = append(plans[i], p.next())
				}
			}
			require.Equal(t, plans[0], plans[1], "the same seed and actor")
			require.NotEqual(t, plans[0], plans[2], "another actor")
			require.NotEqual(t, plans[0], plans[3], "another seed")
		})
	}
}
