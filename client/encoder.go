package client

import "fmt"

// Encoder makes the bytes of a message's key or value, which may be of any type, for a
// BatchProducer. It is called in the goroutine that sends, concurrently for different calls. An
// error, or a panic, fails that message alone.
type Encoder interface {
	// Encode returns the bytes to send; nil is null, which is distinct from empty. They must not
	// change until the message has its outcome. v may be nil.
	Encode(topic string, v any) ([]byte, error)
}

// EncoderFunc is a function as an Encoder.
type EncoderFunc func(topic string, v any) ([]byte, error)

// Encode calls f.
func (f EncoderFunc) Encode(topic string, v any) ([]byte, error) { return f(topic, v) }

// EncoderOf is an Encoder for values of one type; a value of another one fails with an
// *EncodeError, and nil is null without a call.
func EncoderOf[T any](encode func(topic string, v T) ([]byte, error)) Encoder {
	return EncoderFunc(func(topic string, v any) ([]byte, error) {
		if v == nil {
			return nil, nil
		}
		t, ok := v.(T)
		if !ok {
			return nil, fmt.Errorf("is a %T, and the encoder is for %T", v, t)
		}
		return encode(topic, t)
	})
}

// DefaultEncoder takes strings, []byte as it is, and nil, which is null. Anything else needs an
// encoder of the user's.
var DefaultEncoder Encoder = EncoderFunc(encodeText)

func encodeText(_ string, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("is a %T, for which there is no encoder: set producer.batch's Keys or Values", v)
}

// EncodeError is the failure of a message whose key or value could not be made into bytes.
type EncodeError struct {
	Topic string
	Field string // "key" or "value"
	Err   error  // the encoder's; a *PanicError when it panicked
}

func (e *EncodeError) Error() string {
	return fmt.Sprintf("topic %q: the %s cannot be encoded: %v", e.Topic, e.Field, e.Err)
}

func (e *EncodeError) Unwrap() error { return e.Err }
