package archtest_test

import "github.com/workerlink/supervisor/internal/archtest"

// layers is the import table: examples -> inference -> mailbox -> root -> internal, and executor -> root. All may import
// future, which imports nothing of ours. A new package needs a row here.
var layers = []archtest.Layer{
	{Package: ".", Imports: []string{"future", "internal/..."}, Tests: []string{"..."}},
	{Package: "future"},
	{Package: "executor", Imports: []string{".", "future", "internal/..."}, Tests: []string{"..."}},
	{Package: "mailbox", Imports: []string{".", "future", "internal/..."}, Tests: []string{"..."}},
	{Package: "inference", Imports: []string{".", "future", "mailbox", "internal/..."}, Tests: []string{"..."}},
	{Package: "examples/...", Imports: []string{".", "future", "executor", "mailbox", "inference", "examples/internal/..."}},
	{Package: "examples/vecenv", Imports: []string{".", "examples/internal/...", "examples/vecenv/vecenv"}},
	{Package: "examples/vecenv/vecenv", Imports: []string{".", "future", "examples/internal/..."}},
	{Package: "examples/internal/...", Imports: []string{"examples/internal/..."}},

	// These stand alone: bytes, arithmetic, one goroutine.
	{Package: "internal/awake"},
	{Package: "internal/lines"},
	{Package: "internal/restart"},
	{Package: "internal/task"},
	{Package: "internal/wire"},

	{Package: "internal/dispatch", Imports: []string{"future", "internal/..."}},
	{Package: "internal/inside", Imports: []string{"internal/dispatch", "internal/wire"}},
	{Package: "internal/inbox", Imports: []string{"future", "internal/..."}},
	{Package: "internal/pipe", Imports: []string{"future", "internal/..."}},
	{Package: "internal/proc", Imports: []string{"future", "internal/..."}},

	// These serve tests, and so may look up to what they test.
	{Package: "internal/childtest", ForTests: true, Imports: []string{"..."}},
	{Package: "internal/faulttest", ForTests: true, Imports: []string{"..."}},
	{Package: "internal/testkit", ForTests: true, Imports: []string{"..."}},
	{Package: "internal/archtest", ForTests: true},
}

// modules is what the core module may depend on; anything else goes into a module of its own.
var modules = archtest.Modules{
	Library:     []string{"github.com/google/uuid", "go.uber.org/zap", "golang.org/x/sys"},
	LibraryNeed: []string{"go.uber.org/multierr"}, // by zap
	Tests:       []string{"github.com/stretchr/testify", "go.uber.org/goleak", "pgregory.net/rapid"},
	TestsNeed:   []string{"go.yaml.in/yaml/v3"}, // by testify
}

// The limits are aims; what has a good reason to be larger stands in large.
var (
	limits = archtest.Limits{Lines: 500, Fields: 12}
	large  = archtest.Exceptions{
		"snapshot.go: ChildSnapshot":                 "plain data for dashboards, flat so that no reader has to dig",
		"examples/vecenv/vecenv/options.go: Options": "the parameters of DI-engine's EnvSupervisor, flat as there",
	}
)

// startersByTrade are the packages that may start goroutines anywhere: the owner of them all, and what serves tests.
var startersByTrade = []string{"internal/task", "internal/childtest", "internal/testkit"}

// The functions elsewhere that start goroutines, with a statement or with a wait group.
var (
	starters = archtest.Exceptions{
		"future/future.go: Future.Then":                      "future imports nothing of ours; the goroutine is the callback's and ends with it",
		"future/future.go: Future.end":                       "as above: callbacks that were there before the end",
		"examples/vecenv/vecenv/generation.go: Vector.begin": "examples import nothing internal; Close and Launch wait for its end",
	}
	groupStarters = archtest.Exceptions{
		"generation.go: generation.teardown":                 "waits for its group itself, on a goroutine of internal/task",
		"examples/vecenv/vecenv/generation.go: Vector.begin": "examples import nothing internal; the keeper waits for its lanes",
	}
)

// unnamed are the exported names that need no comment.
var unnamed = archtest.Exceptions{}

// logFile alone writes log lines.
const logFile = "event_log.go"

// startFile alone starts programs whose name is not written in the source.
const startFile = "internal/proc/launch_unix.go"

// starting are the functions elsewhere that start such programs.
var starting = archtest.Exceptions{
	"internal/testkit/helper.go: Command": "tests only: the test binary itself, run again",
}

// owning are the functions that change what belongs to the whole process. Each says in whose process it does that.
var owning = archtest.Exceptions{
	"internal/proc/worker_unix.go: Worker.EndGroup":       "a worker's that exits: it leaves its group to end that",
	"internal/proc/limits_linux.go: limit":                "of the worker that was just started, not of this process",
	"internal/proc/worker.go: init":                       "a worker's: the marker leaves its environment",
	"internal/proc/worker_unix.go: Worker.HoldSignals":    "a worker's: its host decides",
	"internal/proc/worker_unix.go: Worker.SetCrashOutput": "a worker's: its fatal trace goes to the host",
	"internal/testkit/main.go: prepare":                   "a test binary's",
	"internal/testkit/helper.go: playHelper":              "a test binary's",
	"internal/testkit/quit_unix.go: traceOnQuit":          "a test binary's",
	"internal/testkit/system_linux.go: adoptOrphans":      "a test binary's",
	"examples/gostats/main.go: main":                      "a program's own",
	"examples/parmap/main.go: main":                       "a program's own",
	"examples/vecenv/main.go: main":                       "a program's own",
}

// words must stand nowhere in the project: paths of somebody's machine and notes to oneself. They are put together here, so
// that this file does not hold them.
var words = []string{
	"/" + "work/",
	"/" + "Users/",
	"C:" + `\Users\`,
	"file:" + "///",
	"TO" + "DO",
	"FIX" + "ME",
}
