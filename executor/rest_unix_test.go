//go:build linux || darwin

package executor_test

import (
	"syscall"

	"github.com/workerlink/supervisor"
)

func alikeProc() supervisor.Proc {
	return supervisor.Proc{Env: []string{}, SysProcAttr: &syscall.SysProcAttr{Noctty: true}}
}
