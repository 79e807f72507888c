package archtest

import (
	"go/ast"
	"go/constant"
	"go/types"
	"path"
	"slices"
	"strings"
)

// named are the functions that start a program, and the place of its name among their arguments.
var named = map[string]int{"os/exec.Command": 0, "os/exec.CommandContext": 1}

// starts are those that take a path, wherever it is from. A lookup is one of them: it makes a path of a name.
var starts = []string{
	"os/exec.LookPath", "os.StartProcess", "syscall.StartProcess", "syscall.ForkExec", "syscall.Exec", "golang.org/x/sys/unix.Exec",
}

// shells take a line and not a program.
var shells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh", "csh", "fish", "cmd", "cmd.exe", "powershell", "pwsh"}

// Starts reports each place outside one file where a program is started whose name is not written there, and each place
// anywhere that starts a shell.
func Starts(p *Program, file string) []Finding {
	var found []Finding
	for _, pkg := range p.Packages {
		for _, f := range pkg.Files {
			name := p.file(pkg, f)
			for _, decl := range f.Decls {
				ast.Inspect(decl, func(n ast.Node) bool {
					if text := pkg.start(n, name == file); text != "" {
						found = append(found, Finding{p.where(n.Pos()), name + ": " + declName(decl), text})
					}
					return true
				})
			}
		}
	}
	return found
}

// start says what is wrong with a node, "" if nothing is. A call is looked at when its function's name comes up in it.
func (p *Package) start(n ast.Node, allowed bool) string {
	const elsewhere = "starts a program that is not named here; internal/proc does that"
	switch n := n.(type) {
	case *ast.CallExpr:
		at, ok := named[p.called(n.Fun)]
		if !ok || at >= len(n.Args) {
			return ""
		}
		value := p.Info.Types[n.Args[at]].Value
		switch {
		case value == nil && !allowed:
			return elsewhere
		case value != nil && slices.Contains(shells, path.Base(constant.StringVal(value))):
			return "starts a shell; start the program"
		}
	case *ast.CompositeLit: // it would go round the functions
		if t := p.Info.Types[n].Type; t != nil && t.String() == "os/exec.Cmd" && !allowed {
			return elsewhere
		}
	case *ast.Ident:
		if fn, ok := p.Info.Uses[n].(*types.Func); ok && slices.Contains(starts, fn.FullName()) && !allowed {
			return elsewhere
		}
	}
	return ""
}

// called is the full name of the function that an expression names, "" if it names none.
func (p *Package) called(fun ast.Expr) string {
	id, ok := fun.(*ast.Ident)
	if sel, isSel := fun.(*ast.SelectorExpr); isSel {
		id, ok = sel.Sel, true
	}
	if !ok {
		return ""
	}
	fn, _ := p.Info.Uses[id].(*types.Func)
	if fn == nil {
		return ""
	}
	return fn.FullName()
}

// WallClock reports each use of a method that takes the wall clock's reading out of a time and leaves the monotonic one
// behind: a deadline must not move when somebody sets the clock.
func WallClock(p *Program) []Finding {
	return p.uses(func(name string) string {
		method, ok := strings.CutPrefix(name, "(time.Time).")
		if ok && slices.Contains([]string{"Unix", "UnixNano", "UnixMicro", "UnixMilli", "Round", "Truncate"}, method) {
			return "takes the wall clock's time; compare times with Sub and Before"
		}
		return ""
	})
}

// owners are the functions that change what belongs to the whole process, by package.
var owners = map[string][]string{
	"os":                     {"Setenv", "Unsetenv", "Clearenv", "Chdir"},
	"os/signal":              {"Notify", "NotifyContext", "Ignore", "Reset"},
	"log":                    {"SetOutput", "SetFlags", "SetPrefix"},
	"log/slog":               {"SetDefault"},
	"runtime/debug":          {"SetCrashOutput", "SetGCPercent", "SetMaxStack", "SetMaxThreads", "SetMemoryLimit", "SetPanicOnFault", "SetTraceback"},
	"syscall":                {"Umask", "Chdir", "Chroot", "Setrlimit", "Setpgid", "Setsid", "Setuid", "Setgid", "Setenv", "Unsetenv"},
	"golang.org/x/sys/unix":  {"Umask", "Chdir", "Chroot", "Setrlimit", "Prlimit", "Prctl", "Setpgid", "Setsid", "Setuid", "Setgid"},
	"go.uber.org/zap":        {"ReplaceGlobals", "RedirectStdLog"},
	"github.com/google/uuid": {"SetRand", "EnableRandPool", "SetNodeID"},
}

// ProcessWide reports each use of a function that changes what belongs to the whole process, such as its signals, its
// environment and its directory: they are the program's, not its libraries'.
func ProcessWide(p *Program) []Finding {
	return p.uses(func(name string) string {
		dot := strings.LastIndexByte(name, '.')
		if dot > 0 && slices.Contains(owners[name[:dot]], name[dot+1:]) {
			return "changes what belongs to the whole process, which is the program's"
		}
		return ""
	})
}
