package childtest

import (
	"context"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/proc"
)

// Goroutines are the goroutine children.
func Goroutines() Kind {
	return Kind{
		Name: "goroutine", Type: supervisor.Goroutine, Register: bySpec(),
		Can: Can{Specs: true, Table: true, Concurrency: true, Remote: true},
	}
}

// Copies are the goroutine children that get and return copies.
func Copies() Kind {
	return Kind{
		Name: "goroutine", Type: supervisor.Goroutine, Register: bySpec(supervisor.WithCopy()),
		Can: Can{Copy: true, Specs: true, Table: true, Concurrency: true, Remote: true},
	}
}

// Processes are the process children.
func Processes() Kind {
	return Kind{
		Name: "process", Type: supervisor.Process, Register: bySpec(), Kill: KillProcess,
		Can: Can{Process: true, Copy: true, Specs: true, Table: true, Concurrency: true, Remote: true},
	}
}

// Kinds are goroutines and, where the system has them, processes.
func Kinds() []Kind {
	if proc.Supported {
		return []Kind{Goroutines(), Processes()}
	}
	return []Kind{Goroutines()}
}

// bySpec registers workers by their spec.
func bySpec(always ...supervisor.ChildOption) func(context.Context, *supervisor.Supervisor, Job, ...supervisor.ChildOption) (int, error) {
	return func(ctx context.Context, s *supervisor.Supervisor, job Job, opts ...supervisor.ChildOption) (int, error) {
		return s.Register(ctx, Spec(job), append(always[:len(always):len(always)], opts...)...)
	}
}
