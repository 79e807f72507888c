package supervisor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// well is what a factory may return without saying more.
type well interface{ Double(n int) int }

var (
	newWell  = supervisor.Define("supervisor_test.well", func(context.Context) (well, error) { return newDesk(), nil })
	newPlain = supervisor.Define("supervisor_test.plain", func(context.Context) (*desk, error) { return newDesk(), nil })
	newHale  = supervisor.Define("supervisor_test.hale", func(context.Context) (hale, error) { return hale{}, nil })
)

// hale has the hook on its pointer alone.
type hale struct{ N int }

// Health is the hook.
func (h *hale) Health(context.Context) error { return nil }

// An option that would do nothing is an error; as a default it is left out.
func TestOptionsThatDoNothing(t *testing.T) {
	live := supervisor.Liveness{Every: time.Hour}
	service := supervisor.Object(supervisor.ServeFunc(func(ctx context.Context) error { <-ctx.Done(); return nil }))
	for name, tt := range map[string]struct {
		spec supervisor.Spec // the zero value: a branch
		opt  supervisor.ChildOption
		want error
		text string
	}{
		"Liveness of an object without Health":             {supervisor.Object(newDesk()), live, supervisor.ErrUnsupported, "Health"},
		"Liveness of a value without Health":               {supervisor.Object(supervisor.Liveness{}), live, supervisor.ErrUnsupported, "Health"},
		"Liveness of a loop":                               {service, live, supervisor.ErrUnsupported, "Health"},
		"Liveness of a factory of things without":          {newPlain, live, supervisor.ErrUnsupported, "Health"},
		"Liveness of an interface that holds none":         {supervisor.Object[well](newDesk()), live, supervisor.ErrUnsupported, "Health"},
		"Liveness of an interface that may hold one":       {newWell, live, nil, ""},
		"Liveness of an object with Health":                {supervisor.Object(&hale{}), live, nil, ""},
		"Liveness of a value with Health":                  {supervisor.Object(hale{}), live, nil, ""},
		"Liveness of an interface that holds one":          {supervisor.Object[any](&hale{}), live, nil, ""},
		"Liveness of a factory of things with":             {newHale, live, nil, ""},
		"Timeout without Every":                            {newHale, supervisor.Liveness{Timeout: time.Second}, supervisor.ErrBadArgs, "Every"},
		"Rolling without a limit":                          {newPlain, supervisor.Recycle{Rolling: true}, supervisor.ErrBadArgs, "Rolling"},
		"MaxMemory of a goroutine":                         {newPlain, supervisor.Recycle{MaxMemory: 1}, supervisor.ErrUnsupported, "MaxMemory"},
		"MaxMemory of a branch":                            {supervisor.Spec{}, supervisor.Recycle{MaxMemory: 1}, supervisor.ErrUnsupported, "MaxMemory"},
		"MaxRequests of a branch":                          {supervisor.Spec{}, supervisor.Recycle{MaxRequests: 1}, supervisor.ErrUnsupported, "MaxRequests"},
		"Rolling of a branch, which cannot be there twice": {supervisor.Spec{}, supervisor.Recycle{MaxAge: 1, Rolling: true}, supervisor.ErrUnsupported, "Rolling"},
		"MaxAge of a branch":                               {supervisor.Spec{}, supervisor.Recycle{MaxAge: time.Hour}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			add := func(sup *supervisor.Supervisor, opts ...supervisor.ChildOption) error {
				if tt.spec.Name() == "" {
					_, err := sup.RegisterChild(t.Context(), newSupervisor(t, supervisor.Goroutine).AsChild(), opts...)
					return err
				}
				_, err := sup.Register(t.Context(), tt.spec, opts...)
				return err
			}
			err := add(newSupervisor(t, supervisor.Goroutine), tt.opt)
			require.ErrorIs(t, err, tt.want, "Register")
			if tt.want == nil {
				return
			}
			require.ErrorContains(t, err, tt.text, "Register")
			if tt.want == supervisor.ErrUnsupported { //nolint:errorlint // the table's
				sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithDefaults(tt.opt))
				require.NoError(t, add(sup), "Register where it is a default")
				require.NoError(t, sup.StartLink(context.Background()), "StartLink")
				shutdown(t, sup)
			}
		})
	}
	sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithDefaults(supervisor.Recycle{MaxMemory: 1, Rolling: true}))
	require.NotPanics(t, func() { register(t, sup, newPlain) }, "Register where nothing is left of a default")
}

// What cannot leave the host says where it can stay.
func TestLoopsOfTheHost(t *testing.T) {
	if len(kinds()) == 1 {
		t.Skip("no processes here")
	}
	sup := newSupervisor(t, supervisor.Process)
	for name, spec := range map[string]supervisor.Spec{
		"a function": supervisor.Object(supervisor.ServeFunc(func(context.Context) error { return nil })),
		"a service":  supervisor.Object(&ticker{time.Hour, "ticker", nil}),
	} {
		_, err := sup.Register(t.Context(), spec)
		require.ErrorIs(t, err, supervisor.ErrEncode, "Register of %s", name)
		require.ErrorContains(t, err, "WithType(Goroutine)", "Register of %s", name)
		register(t, sup, spec, supervisor.WithType(supervisor.Goroutine))
	}
	_, err := sup.Register(t.Context(), supervisor.Object(newDesk()))
	require.ErrorIs(t, err, supervisor.ErrEncode, "Register of an object without a name")
	require.NotContains(t, err.Error(), "WithType", "Register of an object without a loop")
}
