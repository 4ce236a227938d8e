package fetch

// SetEpoch is where a session would be after many requests.
func (s *Session) SetEpoch(epoch int32) { s.epoch = epoch }
