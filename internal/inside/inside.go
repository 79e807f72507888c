// Package inside is the way by which packages of this module reach what the root package keeps to itself. The root fills
// it in before any package that imports it is initialised; after that it is only read.
package inside

import (
	"context"
	"time"

	"github.com/workerlink/supervisor/internal/dispatch"
	"github.com/workerlink/supervisor/internal/wire"
)

var (
	// SetTable makes a factory's objects answer to table instead of their own methods. The factory is defined, and has
	// no child yet. Table is called once, when the first child of it is registered or starts to work.
	SetTable func(factory string, table func() (*dispatch.Table, error))

	// Build makes the object of a spec, a supervisor.Spec, in this process, and returns it as a child holds it: by
	// pointer or interface. A panic is its error.
	Build func(ctx context.Context, spec any) (object any, err error)

	// Types are the names that types were given by RegisterType.
	Types *wire.Registry

	// Inspect says what options, a []supervisor.ChildOption, come to for a child of a supervisor of process children.
	Inspect func(options any) (Child, error)
)

// Child is what some child options come to.
type Child struct {
	Process      bool
	Concurrency  int
	Copies       bool
	StartTimeout time.Duration
	// Text is the same for options that mean the same. Files and writers are told apart by their identity.
	Text string
}
