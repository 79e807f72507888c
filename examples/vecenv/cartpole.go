package main

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/workerlink/supervisor/examples/vecenv/vecenv"
)

// What a cart and its pole are made of, in SI units, and when an episode is over.
const (
	gravity    = 9.8
	cartMass   = 1.0
	poleMass   = 0.1
	poleHalf   = 0.5 // half of the pole's length
	push       = 10.0
	timeStep   = 0.02
	farthest   = 2.4
	mostSloped = 12 * 2 * math.Pi / 360
	longest    = 500 // steps of an episode
)

// Position is what can be seen: place and speed of the cart, angle and angular speed of the pole.
type Position [4]float64

// The pushes.
const (
	pushLeft = iota
	pushRight
)

// Action is a push, and the trouble that the cart meets with then.
type Action struct {
	Push    int
	Trouble Trouble
}

// CartPole is the classic of Barto, Sutton and Anderson: a pole stands on a cart and falls unless the cart is pushed under it.
type CartPole struct {
	random   *rand.Rand
	position Position
	steps    int
	lost     []byte // by a leak
}

var newCartPole = vecenv.Define("vecenv.CartPole", func(context.Context) (*CartPole, error) {
	return &CartPole{random: rand.New(rand.NewPCG(rand.Uint64(), 0))}, nil
})

// Spaces says what a CartPole deals in.
func (c *CartPole) Spaces() vecenv.Spaces {
	high := []float64{2 * farthest, math.MaxFloat64, 2 * mostSloped, math.MaxFloat64}
	low := make([]float64, len(high))
	for i := range high {
		low[i] = -high[i]
	}
	return vecenv.Spaces{
		Observation: vecenv.Space{Shape: []int{4}, Low: low, High: high},
		Action:      vecenv.Space{N: 2},
		Reward:      vecenv.Space{Shape: []int{1}, Low: []float64{0}, High: []float64{1}},
	}
}

// Seed makes the beginnings of episodes repeatable.
func (c *CartPole) Seed(seed int64) error {
	c.random = rand.New(rand.NewPCG(uint64(seed), 0))
	return nil
}

// Reset stands the pole up, nearly.
func (c *CartPole) Reset(context.Context, struct{}) (Position, error) {
	for i := range c.position {
		c.position[i] = c.random.Float64()*0.1 - 0.05
	}
	c.steps = 0
	return c.position, nil
}

// Step pushes the cart and lets a fiftieth of a second pass.
func (c *CartPole) Step(_ context.Context, action Action) (vecenv.Timestep[Position], error) {
	c.meet(action.Trouble)
	c.position = move(c.position, action.Push)
	c.steps++
	fallen := math.Abs(c.position[0]) > farthest || math.Abs(c.position[2]) > mostSloped
	return vecenv.Timestep[Position]{Obs: c.position, Reward: 1, Done: fallen || c.steps >= longest}, nil
}

// Close has nothing to give back.
func (c *CartPole) Close() error { return nil }

// move is one Euler step of the equations of motion.
func move(p Position, action int) Position {
	force := -push
	if action == pushRight {
		force = push
	}
	sin, cos := math.Sincos(p[2])
	const total = cartMass + poleMass
	drive := (force + poleMass*poleHalf*p[3]*p[3]*sin) / total
	turn := (gravity*sin - cos*drive) / (poleHalf * (4.0/3 - poleMass*cos*cos/total))
	speedUp := drive - poleMass*poleHalf*turn*cos/total
	return Position{
		p[0] + timeStep*p[1],
		p[1] + timeStep*speedUp,
		p[2] + timeStep*p[3],
		p[3] + timeStep*turn,
	}
}
