include $(sort $(wildcard $(BR2_EXTERNAL_SHIFTWORK_PATH)/package/*/*.mk))
