package supervisor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/workerlink/supervisor"
)

// Account is what the examples work with.
type Account struct{ Balance int }

// ErrOverdrawn says that there is not enough.
var ErrOverdrawn = errors.New("example: overdrawn")

// Deposit adds an amount and returns the balance.
func (a *Account) Deposit(amount int) int { a.Balance += amount; return a.Balance }

// Withdraw takes an amount and returns the balance.
func (a *Account) Withdraw(amount int) (int, error) {
	if amount > a.Balance {
		return a.Balance, fmt.Errorf("balance %d: %w", a.Balance, ErrOverdrawn)
	}
	a.Balance -= amount
	return a.Balance, nil
}

// Audit panics.
func (a *Account) Audit() { panic("the books do not balance") }

// Wait waits until nobody wants its result any more.
func (a *Account) Wait(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

var newAccount = supervisor.DefineWith("example.Account",
	func(_ context.Context, balance int) (*Account, error) { return &Account{balance}, nil })

func init() { supervisor.RegisterError("example.ErrOverdrawn", ErrOverdrawn) }

// running returns a supervisor with one account per balance, as the examples need it.
func running(kind supervisor.ChildType, balances ...int) *supervisor.Supervisor {
	sup, err := supervisor.New(kind)
	for _, balance := range balances {
		if err == nil {
			_, err = sup.Register(context.Background(), newAccount.With(balance))
		}
	}
	if err == nil {
		err = sup.StartLink(context.Background())
	}
	if err != nil {
		panic(err)
	}
	return sup
}
