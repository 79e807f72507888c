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
// On Linux the kernel sends a worker SIGTERM when the thread that started it ends. This is an extra: the end of file on the
// request pipe is what tells a worker on every system that its host is gone.
//
// Linux and macOS are supported. Elsewhere the package builds and [Starter.Start] returns [ErrUnsupported].
package proc
