package faulttest_test

// Names that the two sides do not agree on, and names that are taken.

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// valuesProcesses skips the test where there are none.
func valuesProcesses(t *testing.T) childtest.Kind {
	t.Helper()
	for _, k := range childtest.Kinds() {
		if k.Can.Process {
			testkit.NoLeaks(t)
			return k
		}
	}
	t.Skip("no processes on this system")
	panic("unreachable")
}

// A type that one side does not know costs the calls with its values; those of other types go on before and after.
func TestF12TypesOfOneSide(t *testing.T) {
	r := newValuesRig(t, valuesProcesses(t), valuesOdd("other types"))
	for range 3 {
		for name, arg := range map[string]any{
			"as an argument": valuesHere{1}, "by pointer": &valuesHere{1}, "in a list": []any{1, valuesHere{2}},
			"in a field": valuesBox{Any: valuesHere{3}},
		} {
			method := "Any"
			if _, ok := arg.(valuesBox); ok {
				method = "Box"
			}
			_, err := r.call(t, method, arg)
			require.ErrorContains(t, err, "valuesHere", "%s: the error names the type", name)
			r.refused(t, err, supervisor.ErrDecode, true, name)
		}
		_, err := r.call(t, "There")
		require.ErrorContains(t, err, "valuesThere", "a result: the error names the type")
		r.refused(t, err, supervisor.ErrDecode, false, "a result")
		_, err = r.call(t, "Any", valuesThere{1})
		require.ErrorContains(t, err, "valuesThere", "a type that the host does not know, as an argument")
		r.refused(t, err, supervisor.ErrEncode, true, "a type that the host does not know, as an argument")
	}
}

// An error arrives as such whatever is in it.
func TestF17ErrorsThatCannotCross(t *testing.T) {
	valuesEach(t, func(t *testing.T, r *valuesRig) {
		_, err := r.call(t, "Odd")
		var remote *supervisor.RemoteError
		require.ErrorAs(t, err, &remote, "an error of a registered type that holds what nobody knows")
		require.Contains(t, remote.Text, "odd: {5", "its text")
		require.Contains(t, remote.Type, "valuesOddError", "its type")
		var odd *valuesOddError
		require.NotErrorAs(t, err, &odd, "the error itself, which no kind of child hands over half")
		require.NotErrorIs(t, err, supervisor.ErrEncode, "it is the handler's error, not one of ours")
		r.fine(t)
	})
}

// A worker that dies of its own registrations says so, instead of just being gone.
func TestF23NamesTakenTwice(t *testing.T) {
	k := valuesProcesses(t)
	for how, text := range map[string]string{
		"a factory twice":     valuesTwice,
		"an error twice":      valuesTwice,
		"a type twice":        "twice",
		"a name of gob twice": valuesTwice,
	} {
		t.Run(how, func(t *testing.T) {
			sup := newSupervisor(t, k.Type)
			register(t, sup, newValues.With(""), valuesOdd(how), supervisor.Restart{Type: supervisor.Temporary})
			var err error
			testkit.Within(t, valuesPrompt, func() { err = sup.StartLink(testkit.Context(t)) })
			var start *supervisor.StartError
			require.ErrorAs(t, err, &start, "StartLink")
			var exit *supervisor.ExitError
			require.ErrorAs(t, err, &exit, "StartLink")
			require.Equal(t, 2, exit.Code, "exit code of a program that panics")
			require.Contains(t, err.Error(), "panic: ", "the error says how the worker ended")
			require.Contains(t, err.Error(), text, "the error says why")
			require.NotContains(t, err.Error(), "\n", "the error is one line")
			require.Contains(t, exit.Tail, "_test.init.", "the output that is kept says where")
		})
	}
	t.Run("in the host", func(t *testing.T) {
		register := func(how string) func() {
			return func() {
				// A name of its own for each run of the test: the host keeps what was registered.
				defer func() {
					v := recover()
					if text, ok := v.(string); ok && strings.Contains(text, "twice") {
						panic("said so")
					}
					panic(v)
				}()
				valuesOddStarts[how]()
			}
		}
		for _, how := range []string{"a factory twice", "an error twice", "a type twice"} {
			require.PanicsWithValue(t, "said so", register(how), how)
		}
	})
}
