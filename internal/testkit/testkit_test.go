package testkit_test

import (
	"testing"
	"time"

	"github.com/workerlink/supervisor/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.SetLeakWait(300 * time.Millisecond)
	testkit.Main(m, nil)
}
