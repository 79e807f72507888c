package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"time"
	"unicode"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
)

// mostTime is how long a file may take in a worker that does not look at its deadline. Past it the worker has hung, and is
// replaced.
const mostTime = 20 * time.Second

// task is a file on its way to a worker.
type task struct {
	Path   string
	Limit  time.Duration
	Poison bool // kills the worker
}

// result is what a job found in a file.
type result struct {
	Bytes int64
	Text  string
}

// jobs are what can be done with a file. They are package variables, so that they have their names in workers too. A file
// that hangs in the system, where nothing looks at its deadline, costs its worker.
var jobs = map[string]*executor.Func[task, result]{
	"hash":  executor.Define("parmap.hash", hash, executor.KillAfter(mostTime)),
	"count": executor.Define("parmap.count", count, executor.KillAfter(mostTime)),

	// A compressor has tables of nearly a megabyte. Each worker makes one, before the first file, and keeps it.
	"compress": executor.Method("parmap.compress", newCompressor, (*compressor).compress, executor.KillAfter(mostTime)),
}

// read gives a file to something that reads it to the end, within the task's limit.
func (t task) read(ctx context.Context, to io.Writer) (int64, error) {
	if t.Poison {
		return 0, die()
	}
	ctx, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	file, err := os.Open(t.Path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return io.Copy(to, readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return file.Read(p)
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// die ends this process as the kernel does when it is short of memory: nothing can prevent it.
func die() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}

func hash(ctx context.Context, t task) (result, error) {
	h := sha256.New()
	n, err := t.read(ctx, h)
	return result{n, fmt.Sprintf("%x", h.Sum(nil))}, err
}

func count(ctx context.Context, t task) (result, error) {
	var c counter
	n, err := t.read(ctx, &c)
	return result{n, fmt.Sprintf("%7d %7d %8d", c.lines, c.words, c.bytes)}, err
}

// compressor is the object that the tasks of a worker share; there is one task at a time.
type compressor struct{ z *gzip.Writer }

var newCompressor = supervisor.Define("parmap.compressor", func(context.Context) (*compressor, error) {
	return &compressor{gzip.NewWriter(io.Discard)}, nil
})

func (c *compressor) compress(ctx context.Context, t task) (result, error) {
	var packed counter
	c.z.Reset(&packed)
	n, err := t.read(ctx, c.z)
	if err == nil {
		err = c.z.Close()
	}
	return result{n, fmt.Sprintf("%8d %8d", n, packed.bytes)}, err
}

// counter counts what is written to it, as wc does; letters beyond ASCII count as parts of words.
type counter struct {
	lines, words, bytes int64
	inWord              bool
}

func (c *counter) Write(p []byte) (int, error) {
	for _, b := range p {
		space := b < unicode.MaxASCII && unicode.IsSpace(rune(b))
		if b == '\n' {
			c.lines++
		}
		if !space && !c.inWord {
			c.words++
		}
		c.inWord = !space
	}
	c.bytes += int64(len(p))
	return len(p), nil
}
