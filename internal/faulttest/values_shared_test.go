package faulttest_test

// Who owns the memory of arguments and results, and which methods can be reached at all.

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Copied arguments are the caller's again when Send returns: it may write while the handler reads, which the race detector
// watches.
func TestF25CopiedArguments(t *testing.T) {
	valuesCopied(t, func(t *testing.T, r *valuesRig) {
		mine := []byte("mine")
		p := send(t, r.sup, supervisor.NewSendPayload(valuesMain, "Hold", mine))[0]
		copy(mine, "XXXX")
		v := r.gate.Next(t)
		for i := range 1000 {
			mine[i%len(mine)]++ // while the handler has its copy
			if i == 500 {
				v.Release(t, "")
			}
		}
		got, err := r.sup.RecvAll(testkit.Context(t), []supervisor.SendPayload{p})
		require.NoError(t, err, "RecvAll")
		require.Equal(t, "mine", got[0].Data, "what the handler saw")

		_, err = r.call(t, "Keep", mine)
		require.NoError(t, err, "Keep")
		before := string(mine)
		copy(mine, "YYYY")
		kept, err := r.call(t, "Kept")
		require.NoError(t, err, "Kept")
		require.Equal(t, before, string(kept.([]byte)), "what the object kept")
		clear(kept.([]byte)) // results are the caller's, too
	})
}

// Without copies a goroutine child works on the caller's memory. The caller may touch it again after the verdict, which
// the race detector takes for an order of events as we do.
func TestG05SharedArguments(t *testing.T) {
	testkit.NoLeaks(t)
	r := newValuesRig(t, childtest.Goroutines())
	shared := []byte("0000")
	for i := range 100 {
		shared[0] = byte('0' + i%10)
		got, err := r.call(t, "Bytes", shared)
		require.NoError(t, err, "Bytes")
		require.Same(t, &shared[0], &got.([]byte)[0], "the memory of the result")
		got.([]byte)[1]++
	}
	_, err := r.call(t, "Keep", shared)
	require.NoError(t, err, "Keep")
	copy(shared, "late")
	kept, err := r.call(t, "Kept") // ordered behind the write by the call
	require.NoError(t, err, "Kept")
	require.Equal(t, "late", string(kept.([]byte)), "what the object kept is what the caller wrote")
}

// valuesOpen is all that may be called of a valuesVault.
type valuesOpen interface{ Open() string }

type valuesCellar struct{}

func (valuesCellar) Promoted() string { return "promoted" }

// valuesVault has more exported methods than it offers.
type valuesVault struct {
	valuesCellar
	Hidden func() string
	Shown  string
}

var valuesEntered atomic.Int32

func (*valuesVault) Open() string   { return "open" }
func (*valuesVault) Break() string  { valuesEntered.Add(1); return "broken" }
func (*valuesVault) String() string { valuesEntered.Add(1); return "vault" }
func (*valuesVault) Close() error   { return nil }
func (*valuesVault) secret() string { valuesEntered.Add(1); return "secret" }

var _ = (*valuesVault).secret

var (
	newValuesOpen = supervisor.Define("faulttest.valuesOpen", func(context.Context) (valuesOpen, error) {
		return &valuesVault{Hidden: func() string { valuesEntered.Add(1); return "" }}, nil
	})
	newValuesVault = supervisor.Define("faulttest.valuesVault", func(context.Context) (*valuesVault, error) {
		return &valuesVault{}, nil
	})
)

func TestZ14MethodTable(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := newSupervisor(t, k.Type)
		narrow, wide := register(t, sup, newValuesOpen), register(t, sup, newValuesVault)
		require.NoError(t, sup.StartLink(testkit.Context(t)), "StartLink")
		call := func(id int, method string) (string, error) {
			return supervisor.Call[string](testkit.Context(t), sup, id, method)
		}
		hidden := []string{"String", "Close", "Promoted", "secret", "Hidden", "open", "OPEN", "Open ", "", "\x00", "valuesCellar", "Snapshot", "Handle"}
		entered := valuesEntered.Load()
		for id, methods := range map[int][]string{narrow: append([]string{"Break", "Shown"}, hidden...), wide: hidden} {
			for _, method := range methods {
				_, err := call(id, method)
				require.ErrorIs(t, err, supervisor.ErrNoSuchMethod, "%q of child %d", method, id)
				err = sup.TrySend(supervisor.NewSendPayload(id, method))
				require.ErrorIs(t, err, supervisor.ErrNoSuchMethod, "%q of child %d, by TrySend", method, id)
			}
		}
		require.Equal(t, entered, valuesEntered.Load(), "hidden methods that ran")
		_, err := supervisor.GetChildAttr[string](testkit.Context(t), sup, narrow, "Shown")
		require.ErrorIs(t, err, supervisor.ErrNoSuchMethod, "a field behind an interface")
		for id, method := range map[int]string{narrow: "Open", wide: "Break"} {
			_, err := call(id, method)
			require.NoError(t, err, "%s, which is offered", method)
		}
	})
}
