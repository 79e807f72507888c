package vecenv

import (
	"fmt"
	"slices"
)

// State is what an environment is doing.
//
//	Void -> Resetting -> Run <-> Stepping -> Done
//
// A reset leads out of Run, Done and Error. Where it fails, and where a step fails:
//
//	Resetting -> Waiting -> Resetting               it answered, and stays
//	          -> Waiting -> Hung -> Resetting       it heeds its context after all, or another took its place
//	          -> Waiting [-> Hung] -> Renewing -> Resetting
//	Stepping  -> Error [-> Hung [-> Renewing]] -> Resetting
//
// Error is also where an environment stays that was given up, by a reset or after
// a step, and one whose reset was withdrawn.
type State int

// The states.
const (
	Void      State = iota // not launched
	Resetting              // an episode is to begin
	Run                    // waits for an action
	Stepping               // works on one
	Done                   // its episode is over
	Waiting                // before the next try of a reset
	Hung                   // did not answer in time; it answers late or is killed
	Renewing               // is being replaced
	Error                  // not usable before a Reset
)

var stateNames = [...]string{"void", "resetting", "run", "stepping", "done", "waiting", "hung", "renewing", "error"}

// String returns the state in one lower-case word.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return stateNames[s]
}

// follow are the states that may come after each one.
var follow = [...][]State{
	Void:      {Resetting},
	Resetting: {Run, Waiting, Error},
	Run:       {Stepping, Resetting},
	Stepping:  {Run, Done, Error},
	Done:      {Resetting},
	Waiting:   {Resetting, Hung, Renewing, Error},
	Hung:      {Resetting, Renewing, Error},
	Renewing:  {Resetting, Error},
	Error:     {Resetting, Hung},
}

// to checks the step from one state to another, which is ours to get right.
func (s State) to(next State) State {
	if !slices.Contains(follow[s], next) {
		panic(fmt.Sprintf("vecenv: an environment goes from %v to %v", s, next))
	}
	return next
}

// takes reports whether an environment in this state takes a request.
func (s State) takes(k Kind) bool {
	if k == StepResult {
		return s == Run
	}
	return s == Void || s == Run || s == Done || s == Error
}
