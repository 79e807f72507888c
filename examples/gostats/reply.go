package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/internal/gosource"
)

// take puts a reply into the table, or sends a lost call on its way again; alone says that its worker had no other file.
func (f *feed) take(reply supervisor.RecvPayload, alone bool) error {
	path := reply.ReqID
	file, err := supervisor.Value[gosource.File](reply)
	var exit *supervisor.ExitError
	var remote *supervisor.RemoteError
	var panicked *supervisor.PanicError
	switch {
	case err == nil:
		f.table.Add(file)
	case errors.As(err, &exit):
		f.tally.lost++
		if !alone || f.chaos.did(reply.Incarnation) {
			f.repeat(path, reply.Incarnation)
			return nil
		}
		f.table.AddProblem(gosource.Problem{Path: path, Text: "its worker died of it: " + lastWords(exit)})
	case errors.As(err, &remote): // the parser's own word, and it would not say another
		f.table.AddError(path, remote)
	case errors.As(err, &panicked):
		f.table.AddError(path, panicked)
	default:
		return err
	}
	f.tally.files++
	f.bar.Step(1)
	return nil
}

// repeat sends a call again that its worker took with it. The supervisor leaves that to the caller, because a crash says
// nothing of how far the worker got: only [supervisor.CallError].Unexecuted says that a call surely was not executed, and
// most of these may have been. Parsing a file twice does no harm, so here all of them are repeated. A caller whose calls
// change something has to ask first what they changed.
func (f *feed) repeat(path string, life uint64) {
	f.tally.repeated++
	if f.chaos.did(life) {
		f.todo = append(f.todo, path)
		return
	}
	f.suspects = append(f.suspects, path) // one of these files is the cause, and would take its neighbours with it again
}

// lastWords says how a worker ended, without what differs from one time to the next.
func lastWords(exit *supervisor.ExitError) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(exit.Trace), "\n"); line != "" {
		return line
	}
	if exit.Signal != 0 {
		return exit.Signal.String()
	}
	return fmt.Sprintf("exit code %d", exit.Code)
}
