//go:build !linux && !darwin

package executor_test

import "github.com/workerlink/supervisor"

func alikeProc() supervisor.Proc { return supervisor.Proc{Env: []string{}} }
