package childtest

import (
	"testing"

	"github.com/workerlink/supervisor/internal/testkit"
)

// rule is one thing that holds for every kind of child.
type rule struct {
	name  string
	check func(t *testing.T, k Kind)
}

// sections are the rules by topic.
var sections = []struct {
	name  string
	rules []rule
}{
	{"values", valueRules},
	{"results", resultRules},
	{"attributes", attributeRules},
	{"refusals", refusalRules},
	{"starts", startRules},
	{"errors", errorRules},
	{"panics", panicRules},
	{"contexts", contextRules},
	{"order", orderRules},
	{"limits", limitRules},
	{"receiving", receiveRules},
	{"gathering", gatherRules},
	{"restarts", restartRules},
	{"membership", memberRules},
	{"shutdown", shutdownRules},
	{"lives", lifeRules},
	{"reports", reportRules},
	{"crashes", crashRules},
	{"ready objects", objectRules},
	{"processes", processRules},
}

// Run runs the suite. newKind is called for each rule.
func Run(t *testing.T, newKind func(t *testing.T) Kind) {
	for _, s := range sections {
		t.Run(s.name, func(t *testing.T) {
			for _, r := range s.rules {
				t.Run(r.name, func(t *testing.T) {
					testkit.NoLeaks(t)
					r.check(t, newKind(t))
				})
			}
		})
	}
}
