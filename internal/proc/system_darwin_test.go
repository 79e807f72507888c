package proc_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func adoptOrphans() {}

func playHost(string) { os.Exit(4) }

func (s *server) doOnSystem(command string) string { return "unknown command " + command }

// checkLeaks checks at the end of the test that nothing is left of it.
func checkLeaks(t *testing.T) {
	running := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, running) })
}
