package executor_test

import (
	"testing"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// The test binary plays three parts: the tests, their workers, and helpers.
func TestMain(m *testing.M) { testkit.Main(m, supervisor.Init) }
