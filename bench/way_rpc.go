package bench

import (
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
)

// rpcMarker, in the environment, makes this binary a worker of net/rpc.
const rpcMarker = "SUPERVISOR_BENCH_RPC"

// rpcPool is the plain way with processes: net/rpc, which codes with gob, over
// the workers' standard input and output.
type rpcPool struct {
	clients []*rpc.Client
	workers []*exec.Cmd
}

func openRPC(workers int) (Pool, error) {
	p := new(rpcPool)
	for range workers {
		if err := p.start(); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

func (p *rpcPool) start() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	cmd := exec.Command(self) //nolint:noctx // it ends with its pipes, see Close
	cmd.Env = append(os.Environ(), rpcMarker+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	p.workers = append(p.workers, cmd)
	p.clients = append(p.clients, rpc.NewClient(duplex{out, in}))
	return nil
}

// duplex makes one connection of two pipes.
type duplex struct {
	io.ReadCloser
	io.WriteCloser
}

func (d duplex) Close() error { return closers(d.WriteCloser.Close, d.ReadCloser.Close) }

func (p *rpcPool) Caller(worker int) func(d int) (int, error) {
	client := p.clients[worker]
	return func(d int) (int, error) {
		var sum int
		err := client.Call("Adder.Add", d, &sum)
		return sum, err
	}
}

func (p *rpcPool) Close() error {
	var errs []error
	for i, cmd := range p.workers {
		errs = append(errs, p.clients[i].Close(), cmd.Wait())
	}
	return errors.Join(errs...)
}

// Adder is the service of a net/rpc worker. Its calls run concurrently, which
// is how net/rpc works, so it needs the mutex.
type Adder struct {
	mu      sync.Mutex
	counter Counter
}

// Add is the method in the form that net/rpc asks for.
func (a *Adder) Add(d int, sum *int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	*sum = a.counter.Add(d)
	return nil
}

func serveRPC() error {
	server := rpc.NewServer()
	if err := server.Register(new(Adder)); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	server.ServeConn(duplex{os.Stdin, os.Stdout}) // until the host closes it
	return nil
}
