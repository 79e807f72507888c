package archtest_test

import "github.com/workerlink/supervisor/internal/archtest"

// These rules are part of the answer to what SECURITY.md lists.

func startRule() rule {
	c := programCheck(func(p *archtest.Program) []archtest.Finding { return archtest.Starts(p, startFile) })
	exec := archtest.Source{Path: "os/exec", Text: `package exec; type Cmd struct{ Path string }
		func Command(string, ...string) *Cmd { return nil }; func CommandContext(any, string, ...string) *Cmd { return nil }
		func LookPath(string) (string, error) { return "", nil }`}
	starts := func(name, text string) offence {
		fine := archtest.Source{Path: "m/internal/proc", File: "launch_unix.go", Text: `package proc; import "os/exec"
			func run(path string) { exec.Command(path); exec.LookPath(path); _ = exec.Cmd{} }`}
		return c.in(name, "file.go: run", exec, fine, archtest.Source{Path: "m", Text: `package m; import "os/exec"
			const program = "sle" + "ep"; func fine() { exec.Command("go", "env"); exec.CommandContext(nil, program, "1") }; ` + text})
	}
	return c.rule("programs started", starting,
		starts("a name from elsewhere", "func run(path string) { exec.Command(path) }"),
		starts("a name from elsewhere, behind a context", `func run(path string) { exec.CommandContext("go", path) }`),
		starts("a lookup", `func run() { exec.LookPath("go") }`),
		starts("a command made by hand", "func run(path string) { _ = &exec.Cmd{Path: path} }"),
		starts("a shell", `func run() { exec.Command("/bin/sh", "-c", "ls") }`),
		c.in("a shell in the file that may start anything", startFile+": run", exec, archtest.Source{
			Path: "m/internal/proc", File: "launch_unix.go", Text: `package proc; import "os/exec"; func run() { exec.Command("bash") }`,
		}),
		c.in("a system call", "file.go: run",
			archtest.Source{Path: "syscall", Text: `package syscall; func ForkExec(string) {}; func Kill(int) {}`},
			archtest.Source{Path: "m", Text: `package m; import "syscall"; func run() { start := syscall.ForkExec; start(""); syscall.Kill(1) }`}),
	)
}

func clockRule() rule {
	c := programCheck(archtest.WallClock)
	clock := archtest.Source{Path: "time", Text: `package time; type Time struct{}; func Now() Time { return Time{} }
		func (Time) Unix() int64 { return 0 }; func (Time) UnixNano() int64 { return 0 }; func (Time) Sub(Time) int { return 0 }
		func (Time) Round(int) Time { return Time{} }; func Unix(int64, int64) Time { return Time{} }`}
	takes := func(name, text string) offence {
		return c.in(name, "file.go: run", clock, archtest.Source{Path: "m", Text: `package m; import "time"
			func fine() int { return time.Now().Sub(time.Unix(1, 0)) }; ` + text})
	}
	return c.rule("wall clock", nil,
		takes("seconds", "func run() bool { return time.Now().Unix() > 1 }"),
		takes("nanoseconds as a value", "func run() func() int64 { return time.Now().UnixNano }"),
		takes("a rounded time", "func run() time.Time { return time.Now().Round(0) }"),
	)
}

func ownerRule() rule {
	c := programCheck(archtest.ProcessWide)
	return c.rule("process-wide state", owning,
		c.in("a signal handler", "file.go: run",
			archtest.Source{Path: "os/signal", Text: `package signal; func Notify() {}; func Stop() {}`},
			archtest.Source{Path: "m", Text: `package m; import "os/signal"; func run() { signal.Notify(); signal.Stop() }`}),
		c.in("a variable of the environment", "file.go: var",
			archtest.Source{Path: "os", Text: `package os; func Setenv() int { return 0 }; func Getenv() {}; type T struct{}; func (T) Setenv() {}`},
			archtest.Source{Path: "m", Text: `package m; import "os"; var set = os.Setenv(); func run() { os.Getenv(); os.T{}.Setenv() }`}),
	)
}
