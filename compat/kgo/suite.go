// Package kgo names the client whose own tests are run against a broker.
package kgo

import _ "github.com/twmb/franz-go/pkg/kgo"
