package testkit_test

import (
	"testing"

	"github.com/workerlink/supervisor/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, nil) }
