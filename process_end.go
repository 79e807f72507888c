package supervisor

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// bury waits for the exit of the process and ends the life: first what is in
// the pipes is read and delivered, then whatever is still open has ended too.
func (l *processLink) bury() {
	status := l.process.Wait()
	l.mu.Lock()
	l.status, l.exited = status, true
	if !l.up.IsZero() {
		l.uptime = time.Since(l.up)
	}
	replies := l.replies
	l.mu.Unlock()
	close(l.exit)

	limit := time.Now().Add(drainWait)
	if replies != nil {
		_ = l.process.Replies.SetReadDeadline(limit) // fails only if it is closed, which is as good
		replies.Wait()
	}
	decoded := task.Go(func(context.Context) { l.decodes.later.Wait() })
	awaitFor(decoded.Done(), drainWait)
	l.output.close(limit)
	l.writer.Close()
	l.conclude()
	_ = l.process.Close() // everything is read, and the writer's end closed already
	close(l.done)
}

// conclude says how the life ended, and of which requests nothing was sent.
func (l *processLink) conclude() {
	l.tellHung()
	exit := l.exitError()
	l.mu.Lock()
	orderly := l.ending && l.fault == nil && l.killedBy == "" && (!l.status.Known || l.status.Code == 0)
	if !orderly {
		l.err = exit
	}
	l.ending = true
	l.mu.Unlock()
	var verdictErr error = exit
	if orderly {
		verdictErr = ErrClosed
	}
	var unsent []*Request
	l.writer.Unsent(func(num uint64) {
		if r := l.take(num); r != nil {
			unsent = append(unsent, r)
		}
	})
	l.mu.Lock()
	unsent = append(unsent, l.last.refused...)
	l.last.refused = nil
	l.mu.Unlock()
	for _, r := range unsent {
		l.life.reply(r, verdict{err: verdictErr, unexecuted: true})
	}
}

// exitError describes the end of the process as far as it is known.
func (l *processLink) exitError() *ExitError {
	tail, trace := l.output.text()
	l.mu.Lock()
	defer l.mu.Unlock()
	trace = cmp.Or(l.last.stacks, trace)
	e := &ExitError{
		Pid: l.process.Pid(), Code: -1, Signal: l.status.Signal, KilledBy: l.killedBy,
		Uptime: l.uptime, Tail: tail, Trace: trace, Err: l.fault,
	}
	e.OOM = l.killedBy == "" && l.status.OOM || strings.HasPrefix(firstLine(trace), "fatal error: ") && strings.Contains(firstLine(trace), "out of memory")
	if l.status.Known && l.status.Signal == 0 {
		e.Code = l.status.Code
	}
	return e
}
