package testkit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestLedger(t *testing.T) {
	l := testkit.NewLedger(t)
	require.Empty(t, l.Counts(t))
	var tasks []*task.Task
	errs := make(chan error, 100)
	for i := range 100 {
		tasks = append(tasks, task.Go(func(context.Context) { errs <- l.Enter(fmt.Sprint(i % 10)) }))
	}
	for _, w := range tasks {
		w.Wait()
		require.NoError(t, <-errs)
	}
	counts := l.Counts(t)
	require.Len(t, counts, 10)
	for id, n := range counts {
		require.Equal(t, 10, n, "executions of %s", id)
	}
	require.ErrorContains(t, testkit.Ledger{Path: "/no/such/ledger"}.Enter("x"), "testkit: ledger")
}

func TestLaw(t *testing.T) {
	rows := []struct {
		name     string
		accepted []string
		verdicts map[string][]testkit.Outcome
		executed map[string]int
		broken   []string
	}{
		{"nothing", nil, nil, nil, nil},
		{
			"kept",
			[]string{"v", "r", "t", "u"},
			map[string][]testkit.Outcome{"v": {testkit.Value}, "r": {testkit.Remote}, "t": {testkit.Transport}, "u": {testkit.Unexecuted}},
			map[string]int{"v": 1, "r": 1, "t": 1},
			nil,
		},
		{"no verdict", []string{"a"}, nil, nil, []string{"a: 0 verdicts []"}},
		{
			"two verdicts",
			[]string{"a"},
			map[string][]testkit.Outcome{"a": {testkit.Value, testkit.Transport}},
			map[string]int{"a": 1},
			[]string{"a: 2 verdicts [value transport error]"},
		},
		{"never accepted", nil, map[string][]testkit.Outcome{"a": {testkit.Transport}}, nil, []string{"a: verdict [transport error], but it was never accepted"}},
		{
			"value without execution",
			[]string{"a"},
			map[string][]testkit.Outcome{"a": {testkit.Value}},
			map[string]int{},
			[]string{"a: a value, but executed 0 times"},
		},
		{
			"executed twice",
			[]string{"a"},
			map[string][]testkit.Outcome{"a": {testkit.Transport}},
			map[string]int{"a": 2},
			[]string{"a: executed 2 times"},
		},
		{
			"executed all the same",
			[]string{"a"},
			map[string][]testkit.Outcome{"a": {testkit.Unexecuted}},
			map[string]int{"a": 1},
			[]string{"a: said to be unexecuted, but executed 1 times"},
		},
		{"accepted twice", []string{"a", "a"}, map[string][]testkit.Outcome{"a": {testkit.Remote}}, nil, []string{"a: accepted 2 times"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var law testkit.Law
			for _, id := range row.accepted {
				law.Accept(id)
			}
			for id, outcomes := range row.verdicts {
				for _, o := range outcomes {
					law.Verdict(id, o)
				}
			}
			complaints := runFake(t, func(t testing.TB) { law.Check(t, row.executed) })
			if row.broken == nil {
				require.Empty(t, complaints)
				return
			}
			require.Len(t, complaints, 1)
			for _, text := range row.broken {
				require.Contains(t, complaints[0], text)
			}
		})
	}
}

func TestLawCounts(t *testing.T) {
	var law testkit.Law
	for i, o := range []testkit.Outcome{testkit.Value, testkit.Value, testkit.Remote} {
		law.Accept(fmt.Sprint(i))
		law.Verdict(fmt.Sprint(i), o)
	}
	accepted, verdicts := law.Counts()
	require.Equal(t, 3, accepted)
	require.Equal(t, map[testkit.Outcome]int{testkit.Value: 2, testkit.Remote: 1}, verdicts)
}
