//go:build linux || darwin

package faulttest_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Large payloads: the copies that are made of one are few, and one over the limit is refused by whoever would send it.
func TestF18LargePayloads(t *testing.T) {
	k := valuesProcesses(t)
	size := times(16, 256) << 20
	r := newValuesRig(t, k)
	blob := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		blob[i] = byte(i >> 12)
	}
	call := func(method string, arg any) (got []byte, err error) {
		testkit.Within(t, 10*valuesPrompt, func() {
			got, err = supervisor.Call[[]byte](context.Background(), r.sup, valuesMain, method, arg)
		})
		return got, err
	}
	var got []byte
	took := allocatedBy(func() {
		var err error
		got, err = call("Bytes", blob)
		require.NoError(t, err, "Bytes of %d MiB", size>>20)
	})
	require.Equal(t, size, len(got), "bytes that return") //nolint:testifylint // Len would print them
	require.True(t, bytes.Equal(blob, got), "the bytes return as they were")
	require.Less(t, took, uint64(3*size), "bytes that the host took, beside the %d that are sent", size)
	there, err := supervisor.Call[uint64](testkit.Context(t), r.sup, valuesMain, "Taken")
	require.NoError(t, err, "Taken")
	require.Less(t, there, uint64(3*size), "bytes that the worker took")

	limit := size / 4
	r = newValuesRig(t, k, supervisor.Limits{Frame: limit})
	for _, over := range []int{size, limit + 1} {
		_, err := call("Bytes", blob[:over])
		r.refused(t, err, supervisor.ErrTooLarge, true, "an argument over the limit")
		_, err = call("Zeros", over)
		r.refused(t, err, supervisor.ErrTooLarge, false, "a result over the limit")
	}
	again, err := call("Bytes", blob[:limit-100])
	require.NoError(t, err, "Bytes just under the limit")
	require.True(t, bytes.Equal(blob[:limit-100], again), "the bytes return as they were")
}
