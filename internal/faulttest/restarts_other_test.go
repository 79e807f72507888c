//go:build !linux && !darwin

package faulttest_test

import (
	"strconv"
	"testing"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
)

// breakerFall ends the life of a child by the request that waits at v.
func breakerFall(t *testing.T, r *breakerRig, id int, v *childtest.Visitor) {
	t.Helper()
	v.Release(t, "")
	r.Events.WaitFor(t, "the end of child "+strconv.Itoa(id), func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventExited && e.ProcID == id
	})
}

// breakerKillStart has a start fail that is at the gate.
func breakerKillStart(t *testing.T, _ childtest.Kind, v *childtest.Visitor) {
	t.Helper()
	v.Release(t, "fail")
}
