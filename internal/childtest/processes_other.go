package childtest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

var otherProgramRules = []rule{
	{"a child may be another program, whose types are its own", otherProgram},
}

// elsewhere is a factory that only another program defines.
var elsewhere = supervisor.Declare[int]("childtest.Elsewhere")

// parcel has the fields of a type of the other program.
type parcel struct {
	Weight int
	Labels []string
}

func otherProgram(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	path := filepath.Join(t.TempDir(), "otherprogram")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/workerlink/supervisor/internal/childtest/testdata/otherprogram")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "go build: %s", out)
	program := supervisor.Proc{Path: path}
	t.Run("calls", func(t *testing.T) { otherProgramCalls(t, k, program) })
	t.Run("refusals", func(t *testing.T) { otherProgramRefuses(t, k, program) })
	t.Run("without Init", func(t *testing.T) {
		program.Env = []string{"FORGET_INIT=1"}
		r := NewRig(t, k)
		_, err := r.Sup.Register(r.Ctx, elsewhere.With(1), program)
		require.NoError(t, err)
		err = r.Sup.StartLink(r.Ctx)
		require.ErrorIs(t, err, supervisor.ErrUnsupported)
		require.ErrorContains(t, err, "supervisor.Init", "it says what is missing")
	})
}

func otherProgramCalls(t *testing.T, k Kind, program supervisor.Proc) {
	r := NewRig(t, k)
	id, err := r.Sup.Register(r.Ctx, elsewhere.With(7), program)
	require.NoError(t, err)
	r.StartLink(t)
	require.Equal(t, 42, CallOf[int](t, r, id, "Double", 21))
	require.Equal(t, parcel{Weight: 3, Labels: []string{"a", "b"}}, CallOf[parcel](t, r, id, "Pack", 3, []string{"a", "b"}))
	p, err := r.Sup.Do(r.Ctx, supervisor.NewSendPayload(id, "Pack", 4, []string(nil)))
	require.NoError(t, err)
	got, err := supervisor.Value[parcel](p)
	require.NoError(t, err, "a result is decoded into the type that it is asked for")
	require.Equal(t, 4, got.Weight)
	_, err = supervisor.Value[chan int](p)
	require.ErrorIs(t, err, supervisor.ErrDecode)
	p, err = r.Sup.Do(r.Ctx, supervisor.SendPayload{ProcID: id, Method: "Weigh", Kwargs: map[string]any{"Weight": 5}})
	require.NoError(t, err, "keyword arguments fill a type that only the worker knows")
	require.Equal(t, 12, p.Data)
	require.Equal(t, 6, CallOf[int](t, r, id, "Sum", 1, 2, 3), "a variadic method")
	number, err := supervisor.GetChildAttr[int](r.Ctx, r.Sup, id, "Number")
	require.NoError(t, err)
	require.Equal(t, 7, number)
}

func otherProgramRefuses(t *testing.T, k Kind, program supervisor.Proc) {
	r := NewRig(t, k)
	id, err := r.Sup.Register(r.Ctx, elsewhere.With(7), program)
	require.NoError(t, err)
	r.StartLink(t)
	for _, row := range []struct {
		name string
		p    supervisor.SendPayload
		want error
	}{
		{"unknown method", supervisor.NewSendPayload(id, "Nope"), supervisor.ErrNoSuchMethod},
		{"field called", supervisor.NewSendPayload(id, "Number"), supervisor.ErrNoSuchMethod},
		{"too few arguments", supervisor.NewSendPayload(id, "Double"), supervisor.ErrBadArgs},
		{"wrong type", supervisor.NewSendPayload(id, "Double", "x"), supervisor.ErrBadArgs},
		{"unknown field", supervisor.SendPayload{ProcID: id, Method: "Weigh", Kwargs: map[string]any{"Colour": 1}}, supervisor.ErrBadArgs},
	} {
		_, err := r.Sup.Do(r.Ctx, row.p)
		require.ErrorIs(t, err, row.want, row.name)
		require.True(t, CallErrorOf(t, err, id, row.p.Method).Unexecuted, "%s: %v", row.name, err)
	}
	_, err = supervisor.Call[any](r.Ctx, r.Sup, id, "Lose")
	var remote *supervisor.RemoteError
	require.ErrorAs(t, err, &remote)
	require.Equal(t, "depot 7: parcel lost", remote.Text)
	require.Equal(t, 2, CallOf[int](t, r, id, "Double", 1), "it answers on")

	_, err = k.Register(r.Ctx, r.Sup, r.Job(), program)
	require.ErrorContains(t, err, "childtest.Worker", "a factory that the program does not have")
	_, err = r.Sup.Register(r.Ctx, elsewhere.With(1), supervisor.WithType(supervisor.Goroutine))
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "as a goroutine")
}
