module github.com/workerlink/supervisor/bench

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/workerlink/supervisor v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/workerlink/supervisor => ../
