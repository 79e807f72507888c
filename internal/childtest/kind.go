package childtest

import (
	"context"
	"testing"

	"github.com/workerlink/supervisor"
)

// Kind is one kind of child.
type Kind struct {
	// Name is how a snapshot calls the kind.
	Name string
	// Type is that of the supervisors that the children belong to.
	Type supervisor.ChildType
	// Can says what the kind is able to.
	Can Can

	// Register adds a child whose object is NewWorker(job) in each of its lives.
	Register func(ctx context.Context, s *supervisor.Supervisor, job Job, opts ...supervisor.ChildOption) (id int, err error)
	// Kill ends the present life of a child as a crash would; nil if nothing does. It need not wait for the end.
	Kill func(t testing.TB, s *supervisor.Supervisor, id int)
}

// Can is what a kind of child is able to. What it is not it refuses in the documented way.
type Can struct {
	Process     bool // lives are operating-system processes
	Copy        bool // arguments and results are copies
	Specs       bool // children are made by the specs of factories
	Table       bool // there is a method table: numbers are converted, attributes read, structs filled by keywords
	Concurrency bool // handlers can run at once, and be timed
	Remote      bool // errors of handlers arrive as *RemoteError
}
