package testkit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestRecorder(t *testing.T) {
	type event struct {
		kind string
		n    int
	}
	r := testkit.NewRecorder(func(e event) string { return e.kind })
	r.Record(event{"a", 1})
	r.Record(event{"b", 2})
	r.Record(event{"a", 3})
	require.Equal(t, event{"b", 2}, r.Wait(t, "b"))
	require.Equal(t, event{"a", 1}, r.Wait(t, "a"), "the earliest")
	require.Equal(t, event{"a", 3}, r.Wait(t, "a"), "the next one")
	recording := task.Go(func(context.Context) { r.Record(event{"a", 4}) })
	require.Equal(t, event{"a", 4}, r.Wait(t, "a"), "one that has yet to come")
	recording.Wait()
	require.Equal(t, []string{"a", "b", "a", "a"}, r.Kinds())
	require.Len(t, r.All(), 4)
	require.Equal(t, "{kind:a n:1}\n{kind:b n:2}\n{kind:a n:3}\n{kind:a n:4}\n", r.String())
}
