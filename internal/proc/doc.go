// Package proc holds everything about worker processes that differs between operating systems: starting them, noticing
// their end, ending them together with their descendants, and the descriptors that host and worker share.
//
// # Descriptors
//
// A worker has standard input from the null device, standard output and error on pipes that the host reads, and
//
//	3    requests, read end of a pipe
//	4    replies, write end of a pipe
//	5    control, one end of a unix socketpair
//	6 …  the files of [Config.Files], in their order
//
// The host keeps at most six descriptors a worker: the five other ends and, on Linux, a pidfd.
//
// # Ends
//
// A worker leads a process group of its own. [Process.Wait] notices the end of the leader while it is a zombie, ends what is
// left of the group, and only then lets the kernel forget the pid; so a signal of ours never meets a stranger. A
// descendant that makes a group or session of its own leaves ours; nothing here follows it.
//
// The end of file on the request pipe tells a worker on every system that its host is gone. On Linux the kernel sends it
// SIGCONT as well when the thread that started it ends: one that is stopped would not see the pipe.
//
// A worker that exits ends the rest of its group itself, too, as its host may die before it can. What is not covered is a
// worker that crashes, or is killed, in the moment in which its host dies: what it has started stays then.
//
// Linux and macOS are supported. Elsewhere the package builds and [Starter.Start] returns [ErrUnsupported].
package proc
