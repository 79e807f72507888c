package faulttest_test

// Values with codec methods of their own, which do whatever they like: it is user code, on both sides.

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// valuesFragile has codec methods that do what its mode says: a word, or "wait at" and a gate's address. What decoding is
// to do may be meant for one side, as in "host: panic".
type valuesFragile struct{ Encode, Decode string }

// valuesAtHost says that this process runs the tests. Workers never get there.
var valuesAtHost atomic.Bool

const valuesGap = "\x1f" // between the two modes

// GobEncode does what Encode says.
func (f valuesFragile) GobEncode() ([]byte, error) {
	if f.Encode == "be short" {
		return []byte(f.Encode), nil // without the gap
	}
	return []byte(f.Encode + valuesGap + f.Decode), valuesMisbehave(f.Encode, "encode")
}

// GobDecode does what Decode says.
func (f *valuesFragile) GobDecode(b []byte) error {
	encode, decode, whole := strings.Cut(string(b), valuesGap)
	if !whole {
		return errors.New("too short to be decoded")
	}
	*f = valuesFragile{Decode: decode}
	if encode != "" {
		f.Encode = "fine"
	}
	side, mode, sided := strings.Cut(decode, ": ")
	if !sided {
		return valuesMisbehave(decode, "decode")
	}
	if (side == "host") != valuesAtHost.Load() {
		return nil
	}
	return valuesMisbehave(mode, "decode")
}

func valuesMisbehave(mode, what string) error {
	switch {
	case mode == "panic":
		panic("cannot " + what)
	case mode == "fail":
		return errors.New("will not " + what)
	case strings.HasPrefix(mode, "wait at "):
		_, err := childtest.WaitAt(context.Background(), strings.TrimPrefix(mode, "wait at "), what)
		return err
	}
	return nil
}

func TestF14CodecsThatFail(t *testing.T) {
	valuesAtHost.Store(true)
	valuesCopied(t, func(t *testing.T, r *valuesRig) {
		for _, row := range []struct {
			name, method string
			arg          valuesFragile
			want         error
			text         string
			unexecuted   bool
		}{
			{"encoding an argument panics", "Fragile", valuesFragile{Encode: "panic"}, supervisor.ErrEncode, "cannot encode", true},
			{"encoding an argument fails", "Fragile", valuesFragile{Encode: "fail"}, supervisor.ErrEncode, "will not encode", true},
			{"decoding an argument panics", "Fragile", valuesFragile{Decode: "panic"}, supervisor.ErrDecode, "cannot decode", true},
			{"decoding an argument fails", "Fragile", valuesFragile{Decode: "fail"}, supervisor.ErrDecode, "will not decode", true},
			{"too little was encoded", "Fragile", valuesFragile{Encode: "be short"}, supervisor.ErrDecode, "too short", true},
		} {
			_, err := r.call(t, row.method, row.arg)
			require.ErrorContains(t, err, row.text, row.name)
			r.refused(t, err, row.want, row.unexecuted, row.name)
		}
		for _, row := range []struct {
			name, encode, decode string
			want                 error
			text                 string
		}{
			{"encoding a result panics", "panic", "", supervisor.ErrEncode, "cannot encode"},
			{"encoding a result fails", "fail", "", supervisor.ErrEncode, "will not encode"},
			{"decoding a result panics", "", "host: panic", supervisor.ErrDecode, "cannot decode"},
			{"decoding a result fails", "", "host: fail", supervisor.ErrDecode, "will not decode"},
			{"too little of a result was encoded", "be short", "", supervisor.ErrDecode, "too short"},
		} {
			_, err := r.call(t, "Make", row.encode, row.decode)
			require.ErrorContains(t, err, row.text, row.name)
			r.refused(t, err, row.want, false, row.name)
		}
		got, err := r.call(t, "Fragile", valuesFragile{})
		require.NoError(t, err, "one that does nothing")
		require.Equal(t, valuesFragile{}, got, "its result")
	})
}

// Codec methods that block hold up the call that they belong to. Those of an argument in the host, and of a result in the
// host, do not even hold up the child.
func TestF14CodecsThatBlock(t *testing.T) {
	valuesAtHost.Store(true)
	valuesCopied(t, func(t *testing.T, r *valuesRig) {
		wait := "wait at " + r.gate.Address
		for _, row := range []struct {
			name, method string
			args         []any
			busy         bool // the child has no time for others
		}{
			{"encoding an argument", "Fragile", []any{valuesFragile{Encode: wait}}, false},
			{"decoding an argument", "Fragile", []any{valuesFragile{Decode: "worker: " + wait}}, true},
			{"encoding a result", "Make", []any{wait, ""}, true},
			{"decoding a result", "Make", []any{"", "host: " + wait}, false},
		} {
			if !r.kind.Can.Process && (row.busy || row.method == "Make") {
				continue // it has no worker's side, and its handler's goroutine copies the result
			}
			result := make(chan error, 1)
			task.Go(func(ctx context.Context) { // Go would encode before it returns
				_, err := supervisor.Call[any](ctx, r.sup, valuesMain, row.method, row.args...)
				result <- err
			})
			v := r.gate.Next(t)
			r.answers(t, valuesSibling, row.name)
			if row.busy {
				p := supervisor.NewSendPayload(valuesMain, "Int", 1)
				p.Timeout = 20 * time.Millisecond
				_, err := r.sup.Do(testkit.Context(t), p)
				require.ErrorIs(t, err, supervisor.ErrTimeout, "%s: the deadline of a call behind it", row.name)
			} else {
				r.answers(t, valuesMain, row.name)
			}
			v.Release(t, "")
			require.NoError(t, testkit.Receive(t, result, "the call whose codec blocked"), "%s, in the end", row.name)
			r.fine(t)
		}
	})
}

func (r *valuesRig) answers(t testing.TB, id int, when string) {
	t.Helper()
	testkit.Within(t, valuesPrompt, func() {
		n, err := supervisor.Call[int](testkit.Context(t), r.sup, id, "Int", 5)
		require.NoError(t, err, "child %d, %s", id, when)
		require.Equal(t, 5, n, "its result")
	})
}
