//go:build unix

package vecenv_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/vecenv/vecenv"
)

// walk is an environment: a walk that ends three steps from where it began.
type walk struct{ first, at int }

var newWalk = vecenv.DefineWith("vecenv_test.walk", func(_ context.Context, first int) (*walk, error) {
	return &walk{first: first}, nil
})

func (w *walk) Spaces() vecenv.Spaces { return vecenv.Spaces{Action: vecenv.Space{N: 2}} }
func (w *walk) Seed(int64) error      { return nil }
func (w *walk) Close() error          { return nil }

func (w *walk) Reset(context.Context, struct{}) (int, error) { w.at = w.first; return w.at, nil }

func (w *walk) Step(_ context.Context, action int) (vecenv.Timestep[int], error) {
	w.at += 2*action - 1
	return vecenv.Timestep[int]{Obs: w.at, Done: w.at <= w.first-3 || w.at >= w.first+3}, nil
}

func policy(seen []int) (actions []int) {
	for range seen {
		actions = append(actions, rand.IntN(2))
	}
	return actions
}

var episodes int

func learn(steps []vecenv.Timestep[int]) {
	for _, s := range steps {
		if s.Done {
			episodes++
		}
	}
}

// train plays three episodes in each of two processes.
func train(ctx context.Context) error {
	v, err := vecenv.New(vecenv.Options{Kind: supervisor.Process, EpisodeNum: 3}, newWalk.With(0), newWalk.With(1))
	if err != nil {
		return err
	}
	defer func() { _ = v.Close(context.Background()) }()
	if err := v.Launch(ctx, nil); err != nil {
		return err
	}
	for !v.Done() { // all six episodes are over
		ids, seen := v.Ready()
		steps, err := v.Step(ctx, ids, policy(seen)) // one per action; Info.Abnormal marks what failed
		if err != nil {
			return err
		}
		learn(steps)
	}
	return nil
}

// This is the program in the README.
func Example() {
	if err := train(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(episodes, "episodes")
	// Output: 6 episodes
}

// The README has train as it stands here.
func TestREADME(t *testing.T) {
	const file = "example_unix_test.go"
	source, err := os.ReadFile(file)
	require.NoError(t, err, "read this file")
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	require.NoError(t, err, "parse this file")
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err, "read the README")
	found := slices.IndexFunc(syntax.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Name.Name == "train"
	})
	require.GreaterOrEqual(t, found, 0, "the place of train")
	train := source[fset.Position(syntax.Decls[found].Pos()).Offset:fset.Position(syntax.Decls[found].End()).Offset]
	require.Contains(t, strings.ReplaceAll(string(readme), "\r", ""), string(train)+"\n```", "the README")
}
